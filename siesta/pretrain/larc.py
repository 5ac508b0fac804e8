"""LARC: layer-wise adaptive rate control on top of SGD with momentum, without clipping, as SwAV uses it.

You et al. 2017, "Large Batch Training of Convolutional Networks".
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from siesta.pretrain.contract import ParamGroup, TrainingRecipe

__all__ = ["Larc", "make_optimizer"]

_TRUST = 0.001
_MOMENTUM = 0.9
_EPSILON = 1e-8


class Larc(torch.optim.SGD):
    """SGD with optional LARC: a gradient g of weights w becomes (g + decay w) * trust |w| / (|g| + decay |w|).

    The length of a step is then proportional to that of the weights, whatever the length of the gradient. Each group
    has the keys `lr_factor` (a function of the fraction of the run), `base_lr_factor`, `decay` and `larc`.
    """

    def prepare(self, lr: float, fraction: float) -> None:
        """Set the learning rate of every group at a fraction of the run and adapt its gradients; call before `step`."""
        for group in self.param_groups:
            factor = group["lr_factor"](fraction)
            group["lr"] = lr * group["base_lr_factor"] * factor
            group["weight_decay"] = 0.0  # added to the gradient below, because LARC scales both
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
            weight_norm, gradient_norm = weights.norm(), gradient.norm()
            gradient.add_(weights, alpha=decay)
            if larc:
                trust = _TRUST * weight_norm / (gradient_norm + decay * weight_norm + _EPSILON)
                gradient.mul_(torch.where((weight_norm > 0) & (gradient_norm > 0), trust, 1.0))


def make_optimizer(param_groups: Iterable[ParamGroup], recipe: TrainingRecipe) -> Larc:
    """Return the optimizer of a method; vectors get groups of their own where the recipe asks for it."""
    groups = []
    for param_group in param_groups:
        trainable = [weights for weights in param_group.parameters if weights.requires_grad]
        matrix_settings = {
            "lr_factor": param_group.lr_factor,
            "base_lr_factor": 1.0,
            "decay": recipe.weight_decay,
            "larc": recipe.larc,
        }
        if recipe.vector_lr_factor is None:
            groups.append({"params": trainable, **matrix_settings})
            continue
        vector_settings = {
            "lr_factor": param_group.lr_factor,
            "base_lr_factor": recipe.vector_lr_factor,
            "decay": 0.0,
            "larc": False,
        }
        groups.append({"params": [weights for weights in trainable if weights.dim() > 1], **matrix_settings})
        groups.append({"params": [weights for weights in trainable if weights.dim() == 1], **vector_settings})
    return Larc([group for group in groups if group["params"]], lr=0.0, momentum=_MOMENTUM)
