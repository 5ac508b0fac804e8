"""REMIND (Hayes et al. 2020): quantised latents of old samples are rehearsed with each new one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from siesta.augment import mixup
from siesta.batch import Batch
from siesta.contracts import Codes
from siesta.methods.crops import random_crop
from siesta.methods.online import Online
from siesta.methods.settings import OnlineSettings

__all__ = ["Remind", "RemindSettings", "decayed"]

_SMALLEST = 2 / 7  # share of a latent that a crop keeps at least, as published


class RemindSettings(OnlineSettings):
    """REMIND's published values; rates are made for group norm, lower them for frozen batch norms.

    Attributes:
        rehearsals: r, old samples a step.
        final_rate: Where the rate of a class ends; None leaves it at `rate`.
        step: Samples of a class after which its rate falls.
        decay_over: Samples of a class after which it has fallen to `final_rate`.
        augment: Whether latents are cropped and rehearsed ones mixed.
    """

    rehearsals: int = Field(default=50, ge=0)
    final_rate: float | None = Field(default=0.001, gt=0)
    step: int = Field(default=100, ge=1)
    decay_over: int = Field(default=1300, ge=1)
    augment: bool = False


def decayed(settings: RemindSettings, taught: int) -> float:
    """The rate for a new sample of a class of which `taught` came before: a function of that number alone.

    Example:
        >>> settings = RemindSettings(rate=0.1, final_rate=0.001, step=10, decay_over=20)
        >>> [round(decayed(settings, taught), 6) for taught in (0, 9, 10, 20, 500)]
        [0.1, 0.1, 0.01, 0.001, 0.001]
    """
    if settings.final_rate is None:
        return settings.rate
    falls = taught // settings.step * settings.step / settings.decay_over
    return settings.rate * float((settings.final_rate / settings.rate) ** min(falls, 1.0))


class Remind(Online[RemindSettings]):
    """One step on the new sample and r distinct ones of the buffer, all of them alike likely.

    Augmented, every latent is cropped at random and brought back to its size, and 2r old samples are mixed into r;
    the new one is not mixed. So a step is r + 1 updates, or fewer while the buffer holds fewer than r; augmented
    samples repeat while it holds fewer than 2r.
    """

    codec: ClassVar[str] = "opq"
    Settings = RemindSettings

    def rate(self, taught: int) -> float:
        """Falls class by class, and is back at its start for a new one."""
        return decayed(self.settings, taught)

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """The new sample first, then the rehearsed ones."""
        if self.settings.augment:
            return self._augmented(code, row, rng)
        codes, rows = self.recall(self.settings.rehearsals, rng)
        all_rows = torch.from_numpy(np.append(row, rows))
        return Batch(self.decode(np.concatenate([code, codes])), all_rows, all_rows)

    def _augmented(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        pairs = min(self.settings.rehearsals, self.stored)
        codes, rows = self.recall(2 * pairs, rng)
        turn = np.resize(np.arange(len(rows)), 2 * pairs)  # from the front again where there are too few
        latents = random_crop(self.decode(np.concatenate([code, codes[turn]])), rng, _SMALLEST)
        mixed, share = mixup(latents[1 : pairs + 1], latents[pairs + 1 :], rng)
        first, second = (torch.from_numpy(np.append(row, some)) for some in (rows[turn[:pairs]], rows[turn[pairs:]]))
        return Batch(torch.cat([latents[:1], mixed]), first, second, share)
