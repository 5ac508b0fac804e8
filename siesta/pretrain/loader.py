"""Batches of crops, prepared by threads while the network trains; each batch is a function of its number."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from siesta.data.shuffling import shuffled
from siesta.pretrain import distributed
from siesta.pretrain.contract import Views
from siesta.pretrain.crops import DRAWS_PER_CROP, CropSpec, cut_crops
from siesta.pretrain.picture_cache import PictureCache
from siesta.rng import Purpose, generator

__all__ = ["CropLoader"]


@lru_cache(maxsize=2)
def _order(count: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order of the images in an epoch."""
    return shuffled(np.arange(count), seed, Purpose.PRETRAIN_ORDER, epoch)


@dataclass(frozen=True)
class CropLoader:
    """Batches of crops of a set of images.

    Attributes:
        pictures: The images.
        labels: Class index of each, (N,).
        crop_specs: The crops to take of each.
        image_size: Side of a crop of size one.
        batch_size: Images in a batch over all ranks; an incomplete batch at the end of an epoch is left out.
        seed: Determines orders and crops. The crops of an image depend on seed, epoch and image only, not on threads
            or ranks.
        workers: Number of threads.
    """

    pictures: PictureCache
    labels: npt.NDArray[np.int64]
    crop_specs: Sequence[CropSpec]
    image_size: int
    batch_size: int
    seed: int
    workers: int = 1

    @property
    def epoch_steps(self) -> int:
        """Number of batches in an epoch."""
        return len(self.pictures) // self.batch_size

    def batch(self, step: int) -> Views:
        """Return this rank's part of a batch."""
        epoch, position = divmod(step, self.epoch_steps)
        start = position * self.batch_size
        indices = _order(len(self.pictures), self.seed, epoch)[start : start + self.batch_size]
        own = np.array_split(indices, distributed.world_size())[distributed.rank()]
        draws = np.stack(
            [
                generator(self.seed, Purpose.PRETRAIN_CROPS, epoch, index).random(
                    (len(self.crop_specs), DRAWS_PER_CROP)
                )
                for index in own
            ]
        )
        crops = cut_crops([self.pictures[index] for index in own], self.crop_specs, self.image_size, draws)
        return Views(crops, torch.from_numpy(self.labels[own]))

    def prefetch(self, step: int) -> Generator[Views]:
        """Yield batches from number `step` on, without end, prepared ahead by threads."""
        pending: deque[Future[Views]] = deque()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while True:
                    while len(pending) <= self.workers:
                        pending.append(pool.submit(self.batch, step))
                        step += 1
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()
