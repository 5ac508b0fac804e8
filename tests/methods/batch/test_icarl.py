"""iCaRL against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.methods.batch.icarl import nearest_mean_scores, sigmoid_loss, softmax_loss
from tests.methods.batch.steps import after_two_steps
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template
from tests.methods.tiny import TINY


def test_softmax_loss() -> None:
    logits, old, rows = numbers(4, 5), numbers(4, 3, seed=1), np.array([0, 4, 3, 2])
    cross = -log_softmax(logits)[np.arange(4), rows].mean()
    kept = -(np.exp(log_softmax(old / 2)) * log_softmax(logits[:, :3] / 2)).sum(axis=1).mean()
    new, own, previous = (torch.from_numpy(part) for part in (logits, rows, old))
    assert float(softmax_loss(new, own, previous, 2.0)) == pytest.approx(cross + kept)
    assert float(softmax_loss(new, own, None, 2.0)) == pytest.approx(cross)


def test_the_papers_loss_has_old_outputs_as_targets_of_old_classes() -> None:
    logits, old, rows = numbers(4, 5), numbers(4, 3, seed=1), np.array([0, 4, 3, 2])
    targets = np.eye(5)[rows]
    targets[:, :3] = 1 / (1 + np.exp(-old))
    shares = 1 / (1 + np.exp(-logits))
    expected = -(targets * np.log(shares) + (1 - targets) * np.log(1 - shares)).sum(axis=1).mean()
    new, own, previous = (torch.from_numpy(part) for part in (logits, rows, old))
    assert float(sigmoid_loss(new, own, previous)) == pytest.approx(expected)
    targets = np.eye(5)[rows]
    expected = -(targets * np.log(shares) + (1 - targets) * np.log(1 - shares)).sum(axis=1).mean()
    assert float(sigmoid_loss(new, own, None)) == pytest.approx(expected)


def test_the_score_is_the_distance_from_the_mean() -> None:
    features, means = numbers(4, 3), numbers(2, 3, seed=1)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = -((unit[:, None] - means[None]) ** 2).sum(axis=2)
    assert np.allclose(nearest_mean_scores(torch.from_numpy(features), torch.from_numpy(means)).numpy(), expected)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_predictions_come_from_the_means_of_exemplars(templates: dict[str, Template], loss: str) -> None:
    method = after_two_steps(templates, "icarl", loss=loss, exemplars=8)
    means = []
    for row in range(4):
        z = method.embed(method.exemplars.of(row))
        unit = (z / np.linalg.norm(z, axis=1, keepdims=True)).mean(axis=0)
        means.append(unit / np.linalg.norm(unit))
    assert np.allclose(method.extra["means"].numpy(), np.stack(means), atol=1e-5)
    codes, _ = templates[TINY].samples([0, 1, 2, 3] * 2, 9)
    with torch.no_grad():
        z = method.network.top(method.workspace.pipeline.decode(codes)).numpy()
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    nearest = np.argmin(((unit[:, None] - np.stack(means)[None]) ** 2).sum(axis=2), axis=1)
    assert [answer[0] for answer in method.predict_many(codes)] == [f"class {row}" for row in nearest]
    assert method.resources().bytes["means"] == 4 * 16 * 4
