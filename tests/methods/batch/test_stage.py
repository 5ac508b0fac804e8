"""Stages: what is trained, in which order, and what it costs."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.stage import Stage, live_norms, passes, step_flops, train_only
from siesta.sleep.batch import Batch
from siesta.sleep.schedule import falling_at


def cross_entropy(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
    return F.cross_entropy(logits, batch.rows)


def stage(**changes: Any) -> Stage:
    top = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    values: dict[str, Any] = {
        "ids": np.arange(6),
        "epochs": 2,
        "top": top,
        "output": nn.Linear(4, 2),
        "loss": cross_entropy,
        "lr": 0.5,
        "weight_decay": 0.1,
        "schedule": falling_at(0.5),
    }
    return Stage(**(values | changes))


def test_all_or_the_chosen_parameters_are_trained() -> None:
    whole = stage()
    trainee = whole.trainee(0.9, live=True)
    group = trainee.optimizer.param_groups[0]
    assert (group["max_lr"], group["momentum"], group["weight_decay"], len(group["params"])) == (0.5, 0.9, 0.1, 5)
    assert len(trainee.live_norms) == 1
    output = nn.Linear(4, 2)
    part = stage(output=output, parameters=list(output.parameters()))
    trainee = part.trainee(0.9, live=True)
    assert len(trainee.optimizer.param_groups[0]["params"]) == 2
    assert not any(parameter.requires_grad for parameter in part.top.parameters())
    assert trainee.live_norms == [], "norms of layers that do not learn keep their statistics"
    assert isinstance(stage(optimizer="adamw").trainee(0.9, live=False).optimizer, torch.optim.AdamW)
    assert stage().trainee(0.9, live=False).live_norms == []


def test_a_parameter_is_trained_once() -> None:
    first, second = nn.Linear(1, 1), nn.Linear(1, 1)
    everything = [*first.parameters(), *second.parameters()]
    assert train_only(everything, [*first.parameters(), *first.parameters()]) == list(first.parameters())
    assert [parameter.requires_grad for parameter in everything] == [True, True, False, False]
    assert live_norms(nn.Sequential(first)) == []


def test_every_pass_is_a_new_order_of_all_ids() -> None:
    orders = list(islice(passes(np.arange(20), np.random.default_rng(0)), 3))
    assert all(sorted(order.tolist()) == list(range(20)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 3


def test_flops_of_a_step_include_other_networks() -> None:
    image = torch.zeros(1, 3, 8, 8)
    convolution, output = 2 * 3 * 4 * 64, 2 * 4 * 2
    plain = stage()
    plain.trainee(0.9, live=True)
    expected = 2 * convolution + 3 * output  # no gradient of the image
    assert step_flops(plain, image) == expected
    teacher = nn.Conv2d(3, 4, 1, bias=False).requires_grad_(False)

    def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
        others: Tensor = teacher(batch.latents)
        return F.cross_entropy(logits, batch.rows) + 0 * others.sum()

    both = stage(loss=loss, others=[teacher])
    both.trainee(0.9, live=True)
    assert step_flops(both, image) == expected + convolution
    assert all(parameter.grad is None for parameter in both.top.parameters())
