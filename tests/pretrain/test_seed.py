"""SEED against NumPy, and its teacher."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from siesta.errors import BadInput
from siesta.pretrain.seed import SEED, check_teacher, seed_loss
from tests.pretrain.toys import FEATURES, TINY, tiny_encoder, views_for


def test_the_loss_matches_numpy() -> None:
    rng = np.random.default_rng(0)
    student, teacher, others = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (rng.normal(size=(count, 6)) for count in (4, 4, 9))
    )
    expected = []
    for own, known in zip(student, teacher, strict=True):
        anchors = np.concatenate([known[None], others])  # the queue, and what the teacher says of this picture
        wanted, found = np.exp(anchors @ known / 0.1), np.exp(anchors @ own / 0.2)
        expected.append(-(wanted / wanted.sum() * np.log(found / found.sum())).sum())
    ours = [torch.from_numpy(rows) for rows in (student, teacher, others)]
    loss = seed_loss(ours[0], ours[1], ours[2], 0.2, 0.1)
    assert float(loss) == pytest.approx(np.mean(expected))


def test_the_queue_takes_the_embeddings_of_the_teacher_after_the_loss() -> None:
    method = SEED(tiny_encoder(), teacher=TINY, teacher_weights="random", queue=12)
    method.train()
    assert method(views_for("seed"), 0.0).loss.item() == pytest.approx(0)  # nothing but itself to compare with
    views = views_for("seed", seed=1)
    assert method(views, 0.0).loss.item() > 0
    assert int(method.queue.filled) == 12
    with torch.no_grad():
        known = nn.functional.normalize(method.teacher(views.crops[0]))
    torch.testing.assert_close(method.queue.rows()[:8], known)


def test_the_teacher_is_not_trained() -> None:
    method = SEED(tiny_encoder(), teacher=TINY, teacher_weights="random", queue=12)
    method.train()
    before = {name: tensor.clone() for name, tensor in method.teacher.state_dict().items()}
    method(views_for("seed"), 0.0)
    assert not method.teacher.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in method.teacher.state_dict().items())
    assert not any(
        id(weights) in {id(own) for own in method.teacher.parameters()}
        for weights in method.param_groups()[0].parameters
    )


def test_a_teacher_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(BadInput, match=r"must return \(images, 32\), and this one returns \(2, 8, 64, 64\)"):
        check_teacher(nn.Conv2d(3, 8, 1), FEATURES)
    with pytest.raises(BadInput, match="no backbone 'nobody'"):
        SEED(tiny_encoder(), teacher="nobody")
