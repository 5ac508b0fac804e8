"""SwAV against NumPy, and against a worked example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional as F

from siesta.pretrain.swav import SwAV, sinkhorn, swapped_loss
from tests.pretrain.toys import tiny_encoder, views_for


def _sinkhorn(scores: npt.NDArray[Any], epsilon: float, rounds: int) -> npt.NDArray[Any]:
    """The algorithm of the paper's appendix, with prototypes in rows."""
    q = np.exp(scores.T / epsilon)
    q /= q.sum()
    k, b = q.shape
    for _ in range(rounds):
        q *= (1 / k / q.sum(axis=1))[:, None]
        q *= (1 / b / q.sum(axis=0))[None]
    return np.asarray((q / q.sum(axis=0, keepdims=True)).T)


def test_sinkhorn_is_the_published_algorithm() -> None:
    scores = np.random.default_rng(0).uniform(-1, 1, (12, 5))
    found = sinkhorn(torch.from_numpy(scores), 0.05, 3)
    np.testing.assert_allclose(found.numpy(), _sinkhorn(scores, 0.05, 3), rtol=1e-9)


def test_assignments_sum_to_one_and_prototypes_share_them_equally() -> None:
    scores = torch.rand(24, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plan = sinkhorn(scores, 0.5, 100)
    torch.testing.assert_close(plan.sum(dim=1), torch.ones(24, dtype=torch.float64))
    torch.testing.assert_close(plan.sum(dim=0), torch.full((6,), 4.0, dtype=torch.float64))
    after_three = sinkhorn(scores, 0.03, 3)
    torch.testing.assert_close(after_three.sum(dim=1), torch.ones(24, dtype=torch.float64))


@pytest.mark.parametrize("epsilon", [0.001, 0.03, 100.0])
def test_sinkhorn_is_stable_for_any_epsilon(epsilon: float) -> None:
    scores = torch.rand(16, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert torch.allclose(sinkhorn(scores, epsilon, 3).sum(dim=1), torch.ones(16), atol=1e-5)


@pytest.mark.parametrize("value", [-1.0, 1.0])
def test_sinkhorn_is_stable_for_the_largest_cosines(value: float) -> None:
    assert torch.allclose(sinkhorn(torch.full((4, 8), value), 0.03, 3), torch.full((4, 8), 1 / 8))


def test_swapped_prediction_on_a_worked_example() -> None:
    """Three crops of one picture, two prototypes, temperature one: four cross-entropies, written out."""
    scores = [torch.tensor([[0.0, math.log(3)]]), torch.tensor([[0.0, 0.0]]), torch.tensor([[math.log(4), 0.0]])]
    targets = [torch.tensor([[1.0, 0.0]]), torch.tensor([[0.25, 0.75]])]
    first = [math.log(2), -math.log(4 / 5)]  # crops 2 and 3 predict the first crop's target
    second = [-0.25 * math.log(1 / 4) - 0.75 * math.log(3 / 4), -0.25 * math.log(4 / 5) - 0.75 * math.log(1 / 5)]
    assert float(swapped_loss(scores, targets, 1.0)) == pytest.approx((sum(first) + sum(second)) / 4)


def _swav(**options: Any) -> SwAV:
    values: dict[str, Any] = {
        "prototypes": 6,
        "hidden": 8,
        "embedding": 4,
        "queue": 16,
        "queue_starts": 0.5,
        "queue_waits": 0,
    }
    return SwAV(tiny_encoder(), **{**values, **options})


def test_the_loss_is_the_mean_of_all_swapped_predictions() -> None:
    method, views = _swav(), views_for("swav")
    found = method(views, 0.0)
    with torch.no_grad():
        every = F.normalize(method.projector(method.encoder.encode_crops(views.crops)))
    cosines = every @ F.normalize(method.prototypes.directions).T
    scores = [rows.detach().double().numpy() for rows in cosines.chunk(8)]
    expected = []
    for crop in (0, 1):
        target = _sinkhorn(scores[crop], 0.03, 3)
        for other in set(range(8)) - {crop}:
            logits = scores[other] / 0.1
            logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            expected.append(-(target * logs).sum(axis=1).mean())
    assert found.loss.item() == pytest.approx(np.mean(expected), rel=1e-4)
    assert found.assignments is not None and torch.allclose(found.assignments.sum(dim=1), torch.ones(8))


def test_prototypes_are_brought_to_length_one_before_use() -> None:
    method = _swav()
    with torch.no_grad():
        method.prototypes.directions.mul_(3)
    method(views_for("swav"), 0.0)
    assert torch.allclose(method.prototypes.directions.norm(dim=1), torch.ones(6))


def test_the_queue_starts_late_and_is_used_once_it_is_full() -> None:
    method = _swav()
    method(views_for("swav"), 0.4)
    assert not any(int(queue.filled) for queue in method.queues)  # type: ignore[arg-type]
    for seed, filled in ((1, 8), (2, 16), (3, 16)):
        views = views_for("swav", seed=seed)
        full = filled == 16 and seed == 3
        before = [queue.rows().clone() for queue in method.queues]  # type: ignore[operator]
        found = method(views, 0.6)
        assert [int(queue.filled) for queue in method.queues] == [filled, filled]  # type: ignore[arg-type]
        with torch.no_grad():
            cosines = (
                F.normalize(method.projector(method.encoder.encode_crops(views.crops))) @ method.prototypes.directions.T
            )
        scores = cosines.chunk(8)
        queued = [rows @ method.prototypes.directions.T for rows in before]
        targets = [
            sinkhorn(torch.cat([queued[crop], scores[crop]]) if full else scores[crop], 0.03, 3)[-8:] for crop in (0, 1)
        ]
        assert found.loss.item() == pytest.approx(float(swapped_loss(scores, targets, 0.1)), rel=1e-5)


def test_the_queue_waits_for_steps_too() -> None:
    method = _swav(queue_waits=2)
    for filled in (0, 0, 8):
        method(views_for("swav"), 1.0)
        assert [int(queue.filled) for queue in method.queues] == [filled, filled]  # type: ignore[arg-type]


def test_prototypes_are_a_group_of_their_own() -> None:
    method = _swav(thaw=0.1, still=0)
    rest, prototypes = method.param_groups()
    assert [tuple(weights.shape) for weights in prototypes.parameters] == [(6, 4)]
    method(views_for("swav"), 0.0)
    assert (rest.lr_factor(0.0), prototypes.lr_factor(0.09), prototypes.lr_factor(0.1)) == (1, 0, 1)
