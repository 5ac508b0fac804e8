"""Optimizers and their layer-wise learning rates."""

from __future__ import annotations

import pytest
import torch

from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.optimizers import layer_groups, make_optimizer, set_lr
from siesta.sleep.settings import SleepSettings
from tests.sleep.test_loop import CPU, SETTINGS, make_head, make_top


def test_learning_rates_fall_layer_by_layer_from_the_head_down() -> None:
    top, output = make_top(), CosineOutput(make_head(), CPU)
    groups = layer_groups(top, output, SETTINGS)
    lr = {id(p): group["max_lr"] for group in groups for p in group["params"]}  # type: ignore[attr-defined]
    assert lr[id(output.vectors)] == lr[id(output.scale)] == 0.1
    assert lr[id(top[1][0].weight)] == pytest.approx(0.1 * 0.9)  # type: ignore[index]
    assert lr[id(top[0].weight)] == pytest.approx(0.1 * 0.9**2)
    assert groups[0]["weight_decay"] == 0.0, "the temperature does not decay"


def test_the_share_sets_every_group() -> None:
    optimizer = make_optimizer(make_top(), CosineOutput(make_head(), CPU), SETTINGS)
    set_lr(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.05, 0.045, 0.0405])


@pytest.mark.parametrize(("name", "kind"), [("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW)])
def test_an_optimizer_has_the_settings(name: str, kind: type[torch.optim.Optimizer]) -> None:
    settings = SleepSettings(0.1, 0.9, 0.0, momentum=0.7, weight_decay=0.3, optimizer=name)
    optimizer = make_optimizer(make_top(), CosineOutput(make_head(), CPU), settings)
    scale, vectors = optimizer.param_groups[:2]
    assert type(optimizer) is kind
    assert (scale["weight_decay"], vectors["weight_decay"]) == (0.0, 0.3)
    assert vectors["momentum"] == 0.7 if name == "sgd" else vectors["betas"] == (0.7, 0.999)
