"""The batch of one training step: samples as they are, or mixed pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from siesta.contracts import Augmentation, Ids
from siesta.errors import BadInput

__all__ = ["Batch", "id_batches"]

_DOMINANT_SHARE = 0.95  # the z of a mixture counts as that of a sample with this share or more


@dataclass(frozen=True)
class Batch:
    """The batch of one training step.

    Attributes:
        latents: (B, d, r, s) or (B, N, d).
        rows: Head row of each sample, or of the first sample of each mixed pair, (B,).
        second_rows: Head row of the second sample of each pair, (B,).
        share: Share of the first sample in each mixed pair; 1 where nothing is mixed.
    """

    latents: Tensor
    rows: Tensor
    second_rows: Tensor
    share: float = 1.0

    @classmethod
    def of(cls, latents: Tensor, rows: Tensor, augment: Augmentation | None, rng: np.random.Generator) -> Batch:
        """Return a batch of loaded latents; with `augment` their first half is mixed with their second half.

        If the number is odd, because some samples were evicted meanwhile, the middle one is in both halves.
        """
        if augment is None:
            return cls(latents, rows, rows)
        half = -(-len(rows) // 2)
        mixed, share = augment(latents[:half], latents[-half:], rng)
        if mixed.shape != latents[:half].shape or not 0 <= share <= 1:
            raise BadInput(
                "an augmentation must return latents of the shape that it was given and a share in 0..1, not shape "
                f"{tuple(mixed.shape)} and {share}: correct it"
            )
        return cls(mixed, rows[:half], rows[-half:], share)

    def dominant_rows(self) -> Tensor | None:
        """Return the head rows (B,) that z belongs to, or None when both parts of a mixture have weight."""
        if self.share >= _DOMINANT_SHARE:
            return self.rows
        return self.second_rows if self.share <= 1 - _DOMINANT_SHARE else None


def id_batches(sample_ids: Iterator[Ids], size: int, total: int | None) -> Iterator[Ids]:
    """Cut a policy's chunks of ids into batches.

    Args:
        sample_ids: Chunks of any length.
        size: Ids in a batch.
        total: Ids in all batches together, of which the last takes the rest; None for no end.
    """
    rest: Ids = np.zeros(0, dtype=np.int64)
    while total is None or total > 0:
        length = size if total is None else min(size, total)
        while len(rest) < length:
            chunk = next(sample_ids, None)
            if chunk is None:
                raise BadInput("the policy ended before the budget was spent: let its sample_ids yield without end")
            rest = np.concatenate([rest, chunk])
        batch, rest = np.split(rest, [length])
        total = None if total is None else total - length
        yield batch
