"""MIRA's assignments minimise the objective of its paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional as F

from siesta.pretrain.mira import MIRA, mira_targets
from siesta.pretrain.swav import swapped_loss
from tests.pretrain.toys import tiny_encoder, views_for

TEMPERATURE, BETA = 0.225, 2 / 3


def _objective(w: npt.NDArray[Any], p: npt.NDArray[Any], beta: float) -> float:
    """Mean KL(w, p) less beta times the mutual information of picture and prototype, its equation 3."""
    used = w.mean(axis=0)
    divergence = (w * np.log(w / p)).sum(axis=1).mean()
    information = (w * np.log(w)).sum(axis=1).mean() - (used * np.log(used)).sum()
    return float(divergence - beta * information)


def _problem() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    scores = np.random.default_rng(0).uniform(-1, 1, (10, 4))
    p = np.exp(scores / TEMPERATURE)
    return scores, p / p.sum(axis=1, keepdims=True)


def test_the_optimum_is_a_fixed_point() -> None:
    scores, p = _problem()
    w = mira_targets(torch.from_numpy(scores), TEMPERATURE, BETA, 200).numpy()
    np.testing.assert_allclose(w.sum(axis=1), 1)
    again = p ** (1 / (1 - BETA)) * w.mean(axis=0) ** (-BETA / (1 - BETA))
    np.testing.assert_allclose(w, again / again.sum(axis=1, keepdims=True), rtol=1e-6)


def test_no_other_assignment_has_a_lower_objective() -> None:
    scores, p = _problem()
    w = mira_targets(torch.from_numpy(scores), TEMPERATURE, BETA, 200).numpy()
    best, rng = _objective(w, p, BETA), np.random.default_rng(1)
    for spread in (0.01, 0.1, 1.0, 3.0):
        for _ in range(50):
            other = w * np.exp(rng.normal(0, spread, w.shape))
            assert _objective(other / other.sum(axis=1, keepdims=True), p, BETA) >= best - 1e-12


def test_thirty_rounds_converge_and_prototypes_are_used_more_evenly() -> None:
    scores, _ = _problem()
    scores[:, 0] += 0.5  # a prototype near all pictures
    few, many = (mira_targets(torch.from_numpy(scores), TEMPERATURE, BETA, rounds).numpy() for rounds in (30, 300))
    np.testing.assert_allclose(few, many, atol=1e-4)
    sharp = np.exp(scores / TEMPERATURE / (1 - BETA))
    sharp /= sharp.sum(axis=1, keepdims=True)
    assert few.mean(axis=0).max() < sharp.mean(axis=0).max()


def test_unused_prototypes_give_finite_assignments() -> None:
    scores = torch.cat([torch.ones(6, 1), -torch.ones(6, 3)], dim=1) * 50
    assert bool(mira_targets(scores, 0.1, 0.75, 30).isfinite().all())


def test_the_momentum_copy_follows_the_encoder() -> None:
    method = MIRA(tiny_encoder(), prototypes=6, hidden=8, embedding=4, slowness=0.9)
    with torch.no_grad():
        for weights in method.encoder.parameters():
            weights.add_(1.0)
    start = [weights.clone() for weights in method.slow_encoder.parameters()]
    method(views_for("mira"), 0.0)
    for old, now in zip(start, method.slow_encoder.parameters(), strict=True):
        torch.testing.assert_close(now, old + 0.1)
    method(views_for("mira"), 1.0)
    for old, now in zip(start, method.slow_encoder.parameters(), strict=True):
        torch.testing.assert_close(now, old + 0.1)  # at the end it does not change


def test_the_loss_is_the_mean_of_all_swapped_predictions() -> None:
    method, views = MIRA(tiny_encoder(), prototypes=6, hidden=8, embedding=4), views_for("mira")
    found = method(views, 0.0)
    with torch.no_grad():  # the copy is still the network itself
        z = method.encoder.encode_crops(views.crops).chunk(len(views.crops))
        scores = [F.normalize(method.projector(rows)) @ method.prototypes.directions.T for rows in z]
    targets = [mira_targets(score, TEMPERATURE, 0.75, 30) for score in scores[:2]]
    assert found.loss.item() == pytest.approx(float(swapped_loss(scores, targets, 0.1)), rel=1e-5)
