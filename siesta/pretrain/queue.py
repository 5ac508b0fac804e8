"""The newest embeddings of batches that have passed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Queue"]


class Queue(nn.Module):
    """Up to `length` rows, newest batch first.

    >>> queue = Queue(3, 1)
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
        """Whether the oldest row is a real one."""
        return int(self.filled) == len(self.kept)

    def rows(self) -> Tensor:
        """What is in it, (n, D)."""
        return self.kept[: int(self.filled)]

    @torch.no_grad()
    def put(self, batch: Tensor) -> None:
        """Adds a batch (B, D) in front; as many of the oldest go."""
        length = len(self.kept)
        # a new tensor: a gradient may still need the old one
        self.kept = torch.cat([batch[:length], self.kept[: max(length - len(batch), 0)]])
        self.filled.add_(len(batch)).clamp_(max=length)
