"""DyTox against NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta.errors import BadInput
from siesta.methods.batch.dytox import dytox_loss
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template

SMALL = {"width": 16, "depth": 2, "heads": 4}


def binary(logits: npt.NDArray[np.float64], rows: npt.NDArray[np.int64]) -> float:
    shares, own = 1 / (1 + np.exp(-logits)), np.eye(logits.shape[1])[rows]
    return float(-(own * np.log(shares) + (1 - own) * np.log(1 - shares)).mean())


def test_the_loss_has_classes_distillation_and_divergence() -> None:
    logits, old, divergence = numbers(4, 5), numbers(4, 3, seed=1), numbers(4, 3, seed=2)
    rows = np.array([0, 4, 3, 2])
    kept = (np.exp(log_softmax(old)) * (log_softmax(old) - log_softmax(logits[:, :3]))).mean()
    expected = 2 / 5 * binary(logits, rows) + 3 / 5 * kept + 0.1 * binary(divergence, np.array([0, 2, 1, 0]))
    new, own, previous, diverging = (torch.from_numpy(part) for part in (logits, rows, old, divergence))
    assert float(dytox_loss(new, own, previous, diverging, 0.1)) == pytest.approx(expected)
    assert float(dytox_loss(new, own, None, None, 0.1)) == pytest.approx(binary(logits, rows))


def test_every_step_adds_a_token_and_a_head_only(templates: dict[str, Template]) -> None:
    method = make(templates, "dytox", **SMALL)
    step(templates, method, FIRST)
    before = method.resources().parameters
    step(templates, method, SECOND)
    head = 2 * 16 + 2 * 16 + 2  # a layer norm and two rows
    assert method.resources().parameters == before + 16 + head
    assert not any("divergence" in name for name in method.state())


def test_the_width_must_fit_the_heads(templates: dict[str, Template]) -> None:
    with pytest.raises(BadInput, match="a width of 10 is no multiple of 4 heads"):
        make(templates, "dytox", width=10, depth=2, heads=4)
