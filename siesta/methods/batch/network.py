"""Networks that grow: one body under a growing output, or several branches side by side; where a body is split."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from siesta.methods.batch.heads import LinearHead

__all__ = ["Branches", "ExpandingNetwork", "GrowingNetwork", "frozen_copy", "parameter_bytes", "stage_ends"]

_FLOAT_BYTES = 4


class GrowingNetwork(nn.Module):
    """Images -> `top` -> features -> `output` -> logits; `output` has a row for each class.

    Attributes:
        top: (B, 3, S, S) -> (B, D).
        output: (B, D) -> (B, K), with `grow(classes)`.
    """

    def __init__(self, top: nn.Module, output: nn.Module) -> None:
        super().__init__()
        self.top = top
        self.output = output

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> logits (B, K)."""
        logits: Tensor = self.output(self.top(images))
        return logits

    def grow(self, classes: int) -> None:
        """Add outputs for so many classes, from torch's global generator."""
        self.output.grow(classes)  # type: ignore[operator]

    def start_from(self, vectors: Tensor, scale: float) -> None:
        """Take class vectors (K, D) of a base initialisation as rows for as many classes."""
        self.grow(len(vectors))
        self.output.set_rows(vectors, scale)  # type: ignore[operator]


class Branches(nn.Module):
    """A trunk, and branches on top of it whose features are concatenated."""

    def __init__(self, trunk: nn.Module, branches: list[nn.Module]) -> None:
        super().__init__()
        self.trunk = trunk
        self.branches = nn.ModuleList(branches)

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, T D) for T branches, oldest first."""
        maps = self.trunk(images)
        return torch.cat([branch(maps) for branch in self.branches], dim=1)

    def newest(self) -> nn.Module:
        """Return the branch of the current step."""
        return self.branches[-1]


class ExpandingNetwork(GrowingNetwork):
    """Branches with one linear output over the features of all of them.

    A new branch starts as a copy of the last one or, if `start` is given, of that; `start` is no part of the network.
    """

    top: Branches
    output: LinearHead

    def __init__(self, trunk: nn.Module, branch: nn.Module, features: int, start: nn.Module | None = None) -> None:
        super().__init__(Branches(trunk, [branch]), LinearHead(features))
        self.features = features
        self._start = (start,)  # in a tuple, so that it is not registered

    def grow(self, classes: int) -> None:
        """Add outputs and, unless these are the first classes, a branch."""
        if len(self.output):
            self.top.branches.append(copy.deepcopy(self._start[0] or self.top.newest()))
        self.output.grow(classes, self.features if len(self.output) else 0)


def frozen_copy(network: nn.Module) -> nn.Module:
    """Return a copy in eval mode that no gradients flow to: the previous network of a distillation."""
    return copy.deepcopy(network).eval().requires_grad_(False)


def parameter_bytes(*networks: nn.Module) -> int:
    """Return the bytes of the networks' parameters in float32."""
    return _FLOAT_BYTES * sum(parameter.numel() for network in networks for parameter in network.parameters())


@torch.no_grad()
def _maps(body: nn.Sequential, image_size: int) -> Iterator[tuple[int, int]]:
    """Yield index and side of the output of each layer that gives a feature map."""
    x = torch.zeros(1, 3, image_size, image_size)
    for index, layer in enumerate(body):
        x = layer(x)
        if x.ndim == 4:
            yield index, x.shape[-1]


def stage_ends(body: nn.Sequential, image_size: int) -> list[int]:
    """Return the layers after which the feature maps become smaller, and the last layer that gives one.

    Example:
        >>> body = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), nn.MaxPool2d(2), nn.Flatten())
        >>> stage_ends(body, 8)
        [1, 2]
    """
    sides = list(_maps(body, image_size))
    ends = [index for (index, side), (_, following) in itertools.pairwise(sides) if following < side]
    return [*ends, sides[-1][0]]
