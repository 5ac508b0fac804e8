"""Distillation losses against NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from siesta.methods.batch.distillation import distilled_cross_entropy, old_logits_of, soft_cross_entropy


def log_softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def numbers(*shape: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(shape) * 3


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_soft_cross_entropy(temperature: float) -> None:
    logits, targets = numbers(4, 3), numbers(4, 3, seed=1)
    expected = -(np.exp(log_softmax(targets / temperature)) * log_softmax(logits / temperature)).sum(axis=1).mean()
    found = soft_cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets), temperature)
    assert float(found) == pytest.approx(expected)


def test_distillation_is_weighted_by_the_share_of_old_classes() -> None:
    logits, old, rows = numbers(4, 5), numbers(4, 3, seed=1), np.array([0, 4, 3, 2])
    cross = -log_softmax(logits)[np.arange(4), rows].mean()
    kept = -(np.exp(log_softmax(old / 2)) * log_softmax(logits[:, :3] / 2)).sum(axis=1).mean()
    found = distilled_cross_entropy(torch.from_numpy(logits), torch.from_numpy(rows), torch.from_numpy(old), 2.0)
    assert float(found) == pytest.approx(2 / 5 * cross + 3 / 5 * kept)
    first = distilled_cross_entropy(torch.from_numpy(logits), torch.from_numpy(rows), None, 2.0)
    assert float(first) == pytest.approx(cross)


def test_the_previous_network_gets_no_gradients() -> None:
    network = nn.Linear(2, 3)
    logits = old_logits_of(network, torch.ones(1, 2))
    assert logits is not None and not logits.requires_grad
    assert torch.equal(logits, network(torch.ones(1, 2)))
    assert old_logits_of(None, torch.ones(1, 2)) is None
