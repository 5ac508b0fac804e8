"""Outputs that grow with the classes: linear rows, and several cosine proxies a class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["LinearHead", "ProxyHead", "reduce_proxies", "seeded", "weight_ratio"]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from this seed inside; its global generator is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def weight_ratio(weights: Tensor, known: int) -> float:
    """Return the mean length of old rows over that of new rows, weights (K, D), of which the first are old (WA)."""
    lengths = weights.detach().norm(dim=1)
    return float(lengths[:known].mean() / lengths[known:].mean())


class LinearHead(nn.Module):
    """Logits W z + b with a row for each class."""

    def __init__(self, features: int, classes: int = 0) -> None:
        super().__init__()
        self.weight = nn.Parameter(_linear_rows(classes, features))
        self.bias = nn.Parameter(torch.zeros(classes))

    def __len__(self) -> int:
        return len(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        """(B, D) -> (B, K)."""
        return F.linear(features, self.weight, self.bias)

    def grow(self, classes: int, features: int = 0) -> None:
        """Add random rows for so many classes, and random columns for so many features after the others."""
        old = self.weight.detach()
        rows = _linear_rows(len(old) + classes, old.shape[1] + features)
        rows[: len(old), : old.shape[1]] = old
        self.weight = nn.Parameter(rows)
        self.bias = nn.Parameter(torch.cat([self.bias.detach(), torch.zeros(classes)]))

    def set_rows(self, directions: Tensor, scale: float) -> None:
        """Set all rows to class vectors (K, D) of length `scale`."""
        with torch.no_grad():
            self.weight.copy_(scale * F.normalize(directions))

    @torch.no_grad()
    def align(self, known: int) -> None:
        """Give new rows the mean length of old ones (Zhao et al. 2020, equation 7)."""
        self.weight[known:] *= weight_ratio(self.weight, known)


def _linear_rows(classes: int, features: int) -> Tensor:
    """Return random rows (K, D), He initialisation for a linear output."""
    bound = math.sqrt(3 / max(features, 1))
    return torch.empty(classes, features).uniform_(-bound, bound)


def reduce_proxies(similarities: Tensor, proxies: int) -> Tensor:
    """Weigh the similarities of each class's proxies with their softmax: (B, K * P) -> (B, K)."""
    grouped = similarities.reshape(len(similarities), -1, proxies)
    return (grouped.softmax(dim=2) * grouped).sum(dim=2)


class ProxyHead(nn.Module):
    """Cosines of z with several proxies a class, reduced to one and multiplied by a learned scale (PODNet).

    Proxies of old classes are kept fixed in `old`.
    """

    def __init__(self, features: int, proxies: int, scale: float) -> None:
        super().__init__()
        self.proxies = proxies
        self.scale = nn.Parameter(torch.tensor(scale))
        self.old = nn.Parameter(torch.zeros(0, features), requires_grad=False)
        self.new = nn.Parameter(torch.zeros(0, features))

    def __len__(self) -> int:
        return (len(self.old) + len(self.new)) // self.proxies

    def forward(self, features: Tensor) -> Tensor:
        """(B, D) -> scaled similarities (B, K)."""
        vectors = F.normalize(torch.cat([self.old, self.new]))
        return self.scale * reduce_proxies(F.linear(F.normalize(features), vectors), self.proxies)

    def grow(self, classes: int) -> None:
        """Fix all proxies and add random ones for so many classes."""
        features = self.old.shape[1]
        bound = 1 / math.sqrt(features)
        rows = torch.empty(classes * self.proxies, features).uniform_(-bound, bound)
        self.old = nn.Parameter(torch.cat([self.old, self.new]).detach(), requires_grad=False)
        self.new = nn.Parameter(rows)

    def set_rows(self, directions: Tensor, scale: float) -> None:
        """Set all proxies of each class to its class vector (K, D), and the scale."""
        with torch.no_grad():
            rows = F.normalize(directions).repeat_interleave(self.proxies, dim=0)
            self.new.copy_(rows[len(self.old) :])
            self.scale.fill_(scale)
