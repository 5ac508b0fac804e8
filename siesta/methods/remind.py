"""REMIND (Hayes et al. 2020): rehearses quantised latents of stored samples with each new one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from siesta.contracts import Codes
from siesta.methods.crops import random_crop
from siesta.methods.online import OnlineMethod
from siesta.methods.settings import OnlineSettings
from siesta.sleep.augment import mixup
from siesta.sleep.batch import Batch

__all__ = ["Remind", "RemindSettings", "decayed_lr"]

_MIN_AREA = 2 / 7  # of a crop of a latent, as published


class RemindSettings(OnlineSettings):
    """REMIND's published values. The learning rates suit group norm; frozen batch norms need lower ones.

    Attributes:
        rehearsals: r, stored samples in each step.
        final_lr: Final learning rate of a class; None keeps it at `lr`.
        step: Number of samples of a class after which its learning rate falls.
        decay_over: Number of samples of a class after which it has fallen to `final_lr`.
        augment: Whether latents are cropped and rehearsed ones mixed.
    """

    rehearsals: int = Field(default=50, ge=0)
    final_lr: float | None = Field(serialization_alias="final_rate", default=0.001, gt=0)
    step: int = Field(default=100, ge=1)
    decay_over: int = Field(default=1300, ge=1)
    augment: bool = False

    def planned_batch_size(self) -> int:
        """Return 1 + r: the new sample and the rehearsed ones."""
        return 1 + self.rehearsals


def decayed_lr(settings: RemindSettings, class_count: int) -> float:
    """Return the learning rate for a new sample of a class with `class_count` samples so far.

    Example:
        >>> settings = RemindSettings(lr=0.1, final_lr=0.001, step=10, decay_over=20)
        >>> [round(decayed_lr(settings, class_count), 6) for class_count in (0, 9, 10, 20, 500)]
        [0.1, 0.1, 0.01, 0.001, 0.001]
    """
    if settings.final_lr is None:
        return settings.lr
    progress = class_count // settings.step * settings.step / settings.decay_over
    return settings.lr * float((settings.final_lr / settings.lr) ** min(progress, 1.0))


class Remind(OnlineMethod[RemindSettings]):
    """One step on the new sample and r distinct stored ones, drawn uniformly.

    With augmentation every latent is cropped at random and resized, and 2r stored samples are mixed into r; the new
    one is not mixed. A step is r + 1 updates, fewer while fewer than r samples are stored; with augmentation samples
    repeat while fewer than 2r are stored.
    """

    codec: ClassVar[str] = "opq"
    Settings = RemindSettings

    def lr_of(self, class_count: int) -> float:
        """Return a learning rate that falls class by class and starts anew for a new class."""
        return decayed_lr(self.settings, class_count)

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """Return a batch of the new sample, followed by the rehearsed ones."""
        if self.settings.augment:
            return self._augmented_batch(code, row, rng)
        codes, rows = self.draw_stored(self.settings.rehearsals, rng)
        all_rows = torch.from_numpy(np.append(row, rows))
        return Batch(self.decode(np.concatenate([code, codes])), all_rows, all_rows)

    def _augmented_batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        pairs = min(self.settings.rehearsals, self.stored)
        codes, rows = self.draw_stored(2 * pairs, rng)
        repeated = np.resize(np.arange(len(rows)), 2 * pairs)  # starts over where there are too few samples
        latents = random_crop(self.decode(np.concatenate([code, codes[repeated]])), rng, _MIN_AREA)
        mixed, share = mixup(latents[1 : pairs + 1], latents[pairs + 1 :], rng)
        first = torch.from_numpy(np.append(row, rows[repeated[:pairs]]))
        second = torch.from_numpy(np.append(row, rows[repeated[pairs:]]))
        return Batch(torch.cat([latents[:1], mixed]), first, second, share)
