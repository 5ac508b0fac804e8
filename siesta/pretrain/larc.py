"""LARC: layer-wise adaptive rates over SGD with momentum, unclipped, as SwAV uses it.

You et al. 2017, "Large Batch Training of Convolutional Networks".
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from siesta.pretrain.contract import Part, Training

__all__ = ["Larc", "make_optimizer"]

_TRUST = 0.001
_MOMENTUM = 0.9


class Larc(torch.optim.SGD):
    """SGD whose groups may be adapted: a gradient g of weights w becomes (g + decay w) * trust |w| / (|g| + decay |w|).

    So a step's length is a share of the weights' own, whatever the gradient's. Every group knows its `part`, the
    factor on its rate, and its `decay`.
    """

    def prepare(self, rate: float, fraction: float) -> None:
        """Sets every group's rate at a fraction of the run, and adapts its gradients; then `step` may come."""
        for group in self.param_groups:
            factor = group["part"].factor(fraction)
            group["lr"] = rate * group["share"] * factor
            group["weight_decay"] = 0.0
            if factor == 0:
                for weights in group["params"]:
                    weights.grad = None
            else:
                self._adapt(group["params"], group["decay"] if factor > 0 else 0.0, group["larc"])

    @torch.no_grad()
    def _adapt(self, parameters: list[nn.Parameter], decay: float, larc: bool) -> None:
        for weights in parameters:
            gradient = weights.grad
            if gradient is None:
                continue
            length, steepness = weights.norm(), gradient.norm()
            gradient.add_(weights, alpha=decay)
            if larc:
                trust = _TRUST * length / (steepness + decay * length + 1e-8)
                gradient.mul_(torch.where((length > 0) & (steepness > 0), trust, 1.0))


def make_optimizer(parts: Iterable[Part], training: Training) -> Larc:
    """An optimizer for a method's parts; vectors apart from the rest where the training says so."""
    groups = []
    for part in parts:
        every = [weights for weights in part.parameters if weights.requires_grad]
        plain = {"part": part, "share": 1.0, "decay": training.weight_decay, "larc": training.larc}
        if training.vectors is None:
            groups.append({"params": every, **plain})
        else:
            vectors = {"part": part, "share": training.vectors, "decay": 0.0, "larc": False}
            groups.append({"params": [weights for weights in every if weights.dim() > 1], **plain})
            groups.append({"params": [weights for weights in every if weights.dim() == 1], **vectors})
    return Larc([group for group in groups if group["params"]], lr=0.0, momentum=_MOMENTUM)
