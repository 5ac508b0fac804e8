"""SEAL ascends the loss in early layers, at its times, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.swav_seal import SwAVSEAL, early_lr_factor
from tests.pretrain.toys import tiny_encoder, views_for


def test_generations_after_the_first_begin_with_ascent() -> None:
    found = [early_lr_factor(step / 40, 4, 0.25, 0.01) for step in range(40)]  # ten steps a generation
    assert found[:10] == [1.0] * 10  # none in the first
    for start in (10, 20, 30):
        assert found[start : start + 3] == [-0.01] * 3 and found[start + 3 : start + 10] == [1.0] * 7


@pytest.mark.parametrize(("fraction", "sign"), [(0.1, -1), (0.55, 1), (0.9, -1)])
def test_only_early_layers_ascend_and_only_then(fraction: float, sign: int) -> None:
    """A step against the gradient is descent: its product with the gradient is below zero."""
    method = SwAVSEAL(tiny_encoder(), prototypes=6, hidden=8, queue=16, generations=2, uphill=0.5)
    method.train()
    optimizer = make_optimizer(method.param_groups(), method.recipe)
    method(views_for("swav+seal"), fraction).loss.backward()
    gradients = {name: weights.grad.clone() for name, weights in method.named_parameters() if weights.grad is not None}
    before = {name: weights.detach().clone() for name, weights in method.named_parameters()}
    optimizer.prepare(0.1, fraction)
    optimizer.step()
    early = {f"swav.encoder.layers.0.{name}" for name, _ in method.encoder.layers[0].named_parameters()}
    moved: dict[bool, float] = {True: 0.0, False: 0.0}
    for name, weights in method.named_parameters():
        moved[name in early] += float(((weights.detach() - before[name]) * gradients[name]).sum())
    assert moved[True] * sign > 0 and moved[False] < 0


def test_ascent_is_slow_and_without_weight_decay() -> None:
    method = SwAVSEAL(tiny_encoder(), prototypes=6, hidden=8, queue=16, generations=2)
    optimizer = make_optimizer(method.param_groups(), method.recipe)
    optimizer.prepare(0.5, 0.51)
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates[0] == pytest.approx(-0.005) and rates[1:] == [0.5, 0.0]  # the last are prototypes, which stand still
    every = [weights for part in method.param_groups() for weights in part.parameters]
    assert len(every) == len({id(weights) for weights in every}) == len(list(method.parameters()))
    assert torch.is_tensor(every[0])
