"""The head as a module that can be trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.head import Head

__all__ = ["CosineOutput", "cosine_logits"]


def cosine_logits(features: Tensor, vectors: Tensor, scale: Tensor | float) -> Tensor:
    """Return a_k / tau of the paper's equation 1, (B, K), for features (B, D) and class vectors (K, D)."""
    return scale * F.linear(F.normalize(features), F.normalize(vectors))


class CosineOutput(nn.Module):
    """The head while it is trained: class vectors (K, D) and 1 / temperature as parameters.

    The vectors start with length one. That leaves the logits, which are cosines, as they are, and makes the effect of
    the learning rate independent of the length of z.
    """

    def __init__(self, head: Head, device: torch.device) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(torch.tensor(head.weights(), device=device)))
        self.scale = nn.Parameter(torch.tensor(head.scale, dtype=torch.float32, device=device))

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits (B, K) of features (B, D)."""
        return cosine_logits(features, self.vectors, self.scale)
