"""What one step of a sleep learns from: samples as they are, or mixed pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from siesta.contracts import Augmentation
from siesta.errors import BadInput

__all__ = ["Batch"]

_PURE = 0.95  # share of one sample in a mixture from which on its z is taken for that sample's


@dataclass(frozen=True)
class Batch:
    """What one step learns from.

    Attributes:
        latents: (B, d, r, s).
        rows: Head row of each sample, or of the first of each mixed pair, (B,).
        others: Head row of the second of each pair, (B,).
        share: Of the first in a mixed pair; 1 where nothing is mixed.
    """

    latents: Tensor
    rows: Tensor
    others: Tensor
    share: float = 1.0

    @classmethod
    def of(cls, latents: Tensor, rows: Tensor, augment: Augmentation | None, rng: np.random.Generator) -> Batch:
        """A batch of loaded latents; to augment, their first half is mixed with their second.

        Of an odd number, as some picks may be gone, the one in the middle is in both halves.
        """
        if augment is None:
            return cls(latents, rows, rows)
        half = -(-len(rows) // 2)
        mixed, share = augment(latents[:half], latents[-half:], rng)
        if mixed.shape != latents[:half].shape or not 0 <= share <= 1:
            raise BadInput("an augmentation gives latents of the shape it was given, and a share in 0..1: mend it")
        return cls(mixed, rows[:half], rows[-half:], share)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy of logits (B, K); of a mixture, that with either label by its share."""
        loss = F.cross_entropy(logits, self.rows)
        if self.share == 1:
            return loss
        return self.share * loss + (1 - self.share) * F.cross_entropy(logits, self.others)

    def pure_rows(self) -> Tensor | None:
        """Whose z these are, (B,): nobody's when both parts of a mixture weigh."""
        if self.share >= _PURE:
            return self.rows
        return self.others if self.share <= 1 - _PURE else None
