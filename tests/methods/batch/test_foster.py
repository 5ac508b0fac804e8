"""FOSTER against NumPy."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from siesta.methods.batch.foster import balanced_distillation, boosting_loss, class_weights
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template


def test_rare_classes_weigh_more() -> None:
    counts = np.array([20, 20, 500])
    raw = (1 - 0.97) / (1 - 0.97**counts)
    assert np.allclose(class_weights(counts.tolist(), 0.97).numpy(), raw / raw.mean(), rtol=1e-6)
    assert class_weights([5, 5], 0.0).tolist() == [1.0, 1.0]


def test_boosting_adjusts_logits_and_keeps_old_ones() -> None:
    logits, newest, old = numbers(4, 5), numbers(4, 5, seed=1), numbers(4, 3, seed=2)
    rows, weights = np.array([0, 4, 3, 2]), np.array([1.5, 1.5, 1.0, 0.5, 0.5])
    expected = (
        -log_softmax(logits / weights)[np.arange(4), rows].mean()
        - log_softmax(newest)[np.arange(4), rows].mean()
        - (np.exp(log_softmax(old / 2)) * log_softmax(logits[:, :3] / 2)).sum(axis=1).mean()
    )
    both, new, previous, own, shares = (torch.from_numpy(part) for part in (logits, newest, old, rows, weights))
    assert float(boosting_loss(both, new, previous, own, shares, 2.0)) == pytest.approx(expected)


def test_compression_weighs_the_teacher_by_class() -> None:
    logits, teacher, weights = numbers(4, 3), numbers(4, 3, seed=1), np.array([2.0, 0.5, 0.5])
    wanted = np.exp(log_softmax(teacher / 2)) * weights
    wanted /= wanted.sum(axis=1, keepdims=True)
    expected = -(wanted * log_softmax(logits / 2)).sum(axis=1).mean()
    one, both, shares = (torch.from_numpy(part) for part in (logits, teacher, weights))
    assert float(balanced_distillation(one, both, shares, 2.0)) == pytest.approx(expected)


def test_one_network_remains_and_two_are_counted_while_it_learns(templates: dict[str, Template]) -> None:
    method = make(templates, "foster", compression_epochs=2)
    step(templates, method, FIRST)
    one = method.resources()
    before = copy.deepcopy(method.network.state_dict())
    step(templates, method, SECOND)
    two = method.resources()
    assert two.parameters == one.parameters + 2 * 16 + 2, "two rows"
    assert two.bytes["copies"] > 2 * 0.9 * one.bytes["network"]
    assert two.updates - one.updates == (2 + 2) * (len(SECOND) + 6)
    after = method.network.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before if name.startswith("top."))
