"""BiC: the fit of two parameters against scipy, and the corrected output."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.optimize import minimize

from siesta.methods.batch.bic import BiasedHead, fit_bias
from tests.methods.batch.steps import FIRST, SECOND, after_two_steps, make, step
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template


@pytest.mark.parametrize(("known", "shift", "weight_decay"), [(3, 2.0, 1e-4), (1, 0.0, 1e-2), (4, -3.0, 1e-4)])
def test_the_fit_minimises_the_loss(known: int, shift: float, weight_decay: float) -> None:
    rng = np.random.default_rng(known)
    rows = rng.integers(0, 5, 60)
    logits = numbers(60, 5, seed=known) + 2 * np.eye(5)[rows]
    logits[:, known:] = 1.7 * logits[:, known:] + shift

    def loss(values: npt.NDArray[np.float64]) -> float:
        corrected = logits.copy()
        corrected[:, known:] = values[0] * corrected[:, known:] + values[1]
        return float(-log_softmax(corrected)[np.arange(60), rows].mean() + weight_decay / 2 * (values**2).sum())

    expected = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
    found = fit_bias(logits, rows, known, weight_decay)
    assert found == pytest.approx(expected.x, abs=1e-4)


def test_separable_images_have_a_finite_fit() -> None:
    logits = np.eye(4) * 30
    alpha, beta = fit_bias(logits, np.arange(4), 2, 1e-4)
    assert np.isfinite([alpha, beta]).all()


def test_only_logits_of_new_classes_are_corrected() -> None:
    head = BiasedHead(3)
    head.grow(2)
    head.grow(2)
    features = torch.randn(4, 3)
    plain = head(features).detach()
    head.correct(2, 2.0, -1.0)
    assert torch.equal(head(features)[:, :2], plain[:, :2])
    assert torch.allclose(head(features)[:, 2:], 2 * plain[:, 2:] - 1)
    head.grow(1)
    assert head.alpha.tolist() == [1, 1, 2, 2, 1] and head.beta.tolist() == [0, 0, -1, -1, 0]


def test_the_correction_is_that_of_held_out_images(templates: dict[str, Template]) -> None:
    method = make(templates, "bic", exemplars=8)
    step(templates, method, FIRST)
    assert method.network.output.alpha.tolist() == [1.0, 1.0]
    updates = method.resources().updates
    step(templates, method, SECOND)
    assert method.resources().updates - updates == 2 * (len(SECOND) + 8 - 4), "one image of each class is held out"
    alpha = method.network.output.alpha.tolist()
    assert alpha[:2] == [1.0, 1.0] and alpha[2] == alpha[3] != 1.0
    assert len(after_two_steps(templates, "bic", exemplars=4).network.output.alpha) == 4
