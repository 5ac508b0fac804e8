"""A first-in, first-out queue of embeddings of recent batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["EmbeddingQueue"]


class EmbeddingQueue(nn.Module):
    """Up to `length` rows, newest batch first; its buffers are part of a checkpoint.

    >>> queue = EmbeddingQueue(3, 1)
    >>> queue.put(torch.tensor([[1.0], [2.0]]))
    >>> queue.put(torch.tensor([[3.0], [4.0]]))
    >>> queue.rows().flatten().tolist(), queue.full
    ([3.0, 4.0, 1.0], True)
    """

    kept: Tensor
    filled: Tensor

    def __init__(self, length: int, features: int) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(length, features))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    @property
    def full(self) -> bool:
        """Whether `length` rows have been put."""
        return int(self.filled) == len(self.kept)

    def rows(self) -> Tensor:
        """Return the rows in the queue, (n, D)."""
        return self.kept[: int(self.filled)]

    @torch.no_grad()
    def put(self, batch: Tensor) -> None:
        """Add a batch (B, D) in front and drop the oldest rows beyond `length`."""
        length = len(self.kept)
        # a new tensor, because a backward pass may still need the old one
        self.kept = torch.cat([batch[:length], self.kept[: max(length - len(batch), 0)]])
        self.filled.add_(len(batch)).clamp_(max=length)
