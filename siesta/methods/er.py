"""Experience replay (Chaudhry et al. 2019), sample by sample as in the paper: stored images, the whole network."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from siesta.contracts import Codes
from siesta.methods.crops import random_crop, random_flip
from siesta.methods.online import OnlineMethod
from siesta.methods.settings import OnlineSettings
from siesta.sleep.batch import Batch

__all__ = ["ER", "ERSettings"]

_MIN_AREA = 0.08  # of a random resized crop, the usual value


class ERSettings(OnlineSettings):
    """The paper's values for ImageNet; the learning rate is fixed.

    Attributes:
        rehearsals: r, stored images in each step.
        augment: Whether images are cropped and flipped at random.
    """

    rehearsals: int = Field(default=9, ge=0)
    augment: bool = False

    def planned_batch_size(self) -> int:
        """Return 1 + r: the new sample and the rehearsed ones."""
        return 1 + self.rehearsals


class ER(OnlineMethod[ERSettings]):
    """One step of all layers on the new image and r distinct stored ones, drawn uniformly."""

    codec: ClassVar[str] = "raw"
    Settings = ERSettings

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """Return a batch of the new image, followed by the rehearsed ones."""
        codes, rows = self.draw_stored(self.settings.rehearsals, rng)
        images = self.decode(np.concatenate([code, codes]))
        if self.settings.augment:
            images = random_flip(random_crop(images, rng, _MIN_AREA), rng)
        all_rows = torch.from_numpy(np.append(row, rows))
        return Batch(images, all_rows, all_rows)
