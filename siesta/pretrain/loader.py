"""Batches of crops, prepared by threads while the network learns; what a batch holds hangs on its number alone."""

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
from siesta.pretrain import ranks
from siesta.pretrain.contract import Views
from siesta.pretrain.crops import DRAWS, Crop, cut_crops
from siesta.pretrain.pictures import Copies

__all__ = ["Loader"]

_ORDER, _CROPS = 1, 2  # purposes of random streams


@lru_cache(maxsize=2)
def _order(count: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """In which order an epoch shows its pictures."""
    return shuffled(np.arange(count), seed, _ORDER, epoch)


@dataclass(frozen=True)
class Loader:
    """What is learned from, in batches.

    Attributes:
        pictures: Where they come from.
        labels: Index of each one's class, (N,).
        plan: Crops of each.
        image_size: Side of a crop of size one.
        batch_size: Over all ranks; a rest at the end of an epoch is left out.
        seed: Of orders and crops. A picture's crops hang on seed, epoch and picture, not on who cuts them.
        workers: Threads.
    """

    pictures: Copies
    labels: npt.NDArray[np.int64]
    plan: Sequence[Crop]
    image_size: int
    batch_size: int
    seed: int
    workers: int = 1

    @property
    def epoch_steps(self) -> int:
        """Batches in an epoch."""
        return len(self.pictures) // self.batch_size

    def views(self, step: int) -> Views:
        """This rank's piece of a batch."""
        epoch, place = divmod(step, self.epoch_steps)
        every = _order(len(self.pictures), self.seed, epoch)[place * self.batch_size : (place + 1) * self.batch_size]
        chosen = np.array_split(every, ranks.count())[ranks.rank()]
        draws = np.stack(
            [
                np.random.default_rng((self.seed, _CROPS, epoch, index)).random((len(self.plan), DRAWS))
                for index in chosen
            ]
        )
        crops = cut_crops([self.pictures[index] for index in chosen], self.plan, self.image_size, draws)
        return Views(crops, torch.from_numpy(self.labels[chosen]))

    def ahead(self, step: int) -> Generator[Views]:
        """Batches from this one on, without end."""
        waiting: deque[Future[Views]] = deque()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while True:
                    while len(waiting) <= self.workers:
                        waiting.append(pool.submit(self.views, step))
                        step += 1
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
