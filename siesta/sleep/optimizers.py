"""Optimizers by name, and their layer-wise learning rates."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.settings import SleepSettings

__all__ = ["OPTIMIZERS", "Groups", "layer_groups", "make_optimizer", "set_lr"]

Groups = list[dict[str, object]]


def _sgd(groups: Groups, settings: SleepSettings) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay)


def _adamw(groups: Groups, settings: SleepSettings) -> torch.optim.Optimizer:
    betas = (settings.momentum, 0.999)
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, weight_decay=settings.weight_decay)


OPTIMIZERS: dict[str, Callable[[Groups, SleepSettings], torch.optim.Optimizer]] = {"sgd": _sgd, "adamw": _adamw}


def make_optimizer(top: nn.Sequential, output: CosineOutput, settings: SleepSettings) -> torch.optim.Optimizer:
    """Return the optimizer of a sleep; its learning rate is zero until `set_lr`."""
    return OPTIMIZERS[settings.optimizer](layer_groups(top, output, settings), settings)


def layer_groups(top: nn.Sequential, output: CosineOutput, settings: SleepSettings) -> Groups:
    """Return parameter groups with "max_lr": `lr` for the head, `layer_decay` times that above for each layer below."""
    groups: Groups = [
        {"params": [output.scale], "max_lr": settings.lr, "weight_decay": 0.0},
        {"params": [output.vectors], "max_lr": settings.lr},
    ]
    lr = settings.lr
    for layer in reversed(top):
        parameters = list(layer.parameters())
        if parameters:
            lr *= settings.layer_decay
            groups.append({"params": parameters, "max_lr": lr})
    return groups


def set_lr(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Set the learning rate of each group to a share of its maximum."""
    for group in optimizer.param_groups:
        group["lr"] = group["max_lr"] * share
