"""Experience replay (Chaudhry et al. 2019), sample by sample as in the paper: pictures, and the whole network."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from siesta.batch import Batch
from siesta.contracts import Codes
from siesta.methods.crops import random_crop, random_flip
from siesta.methods.online import Online
from siesta.methods.settings import OnlineSettings

__all__ = ["ER", "ERSettings"]

_SMALLEST = 0.08  # share of a picture that a crop keeps at least, as is usual


class ERSettings(OnlineSettings):
    """The paper's values for ImageNet; the rate is fixed.

    Attributes:
        rehearsals: r, old pictures a step.
        augment: Whether pictures are cropped and flipped at random.
    """

    rehearsals: int = Field(default=9, ge=0)
    augment: bool = False


class ER(Online[ERSettings]):
    """One step of all layers on the new picture and r distinct ones of the buffer, all of them alike likely."""

    codec: ClassVar[str] = "raw"
    Settings = ERSettings

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """The new picture first, then the rehearsed ones."""
        codes, rows = self.recall(self.settings.rehearsals, rng)
        pictures = self.decode(np.concatenate([code, codes]))
        if self.settings.augment:
            pictures = random_flip(random_crop(pictures, rng, _SMALLEST), rng)
        all_rows = torch.from_numpy(np.append(row, rows))
        return Batch(pictures, all_rows, all_rows)
