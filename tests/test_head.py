"""The head against the paper's equations, written out in NumPy."""

from __future__ import annotations

import numpy as np
import torch

from siesta.head import Head, cosine_logits


def test_probabilities_are_the_cosine_softmax_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    features, vectors, scale = rng.normal(size=(5, 7)), rng.normal(size=(3, 7)), 9.0
    cosine = (features @ vectors.T) / np.linalg.norm(features, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    expected = np.exp(cosine * scale) / np.exp(cosine * scale).sum(axis=1, keepdims=True)
    head = Head(torch.arange(3), torch.from_numpy(vectors).float(), torch.ones(3, dtype=torch.int64), scale)
    np.testing.assert_allclose(head.probabilities(torch.from_numpy(features).float()).numpy(), expected, rtol=1e-5)


def test_running_mean_is_the_recursion_of_the_paper_over_generations() -> None:
    """f <- (c f + z) / (c + 1), c <- c + 1, through a sleep that replaces f and leaves c."""
    rng = np.random.default_rng(1)
    head = Head.empty(features=4, scale=10.0)
    f, c, total = np.zeros(4), 0, np.zeros(4)
    for count, z in enumerate(rng.normal(size=(6, 4)), start=1):
        f, c, total = (c * f + z) / (c + 1), c + 1, total + z
        head.set_recent(7, torch.from_numpy(total), count)
    np.testing.assert_allclose(head.weights()[0].numpy(), f, rtol=1e-6)
    trained = rng.normal(size=4)
    head = head.consolidated(torch.from_numpy(trained).float()[None], scale=11.0, norm=2.5)
    f, total = 2.5 * trained / np.linalg.norm(trained), np.zeros(4)
    np.testing.assert_allclose(head.weights()[0].numpy(), f, rtol=1e-6)
    for count, z in enumerate(rng.normal(size=(3, 4)), start=1):
        f, c, total = (c * f + z) / (c + 1), c + 1, total + z
        head.set_recent(7, torch.from_numpy(total), count)
    np.testing.assert_allclose(head.weights()[0].numpy(), f, rtol=1e-6)
    assert head.count(7) == c == 9


def test_consolidation_keeps_directions_and_evens_lengths() -> None:
    head = Head.empty(features=3, scale=4.0)
    for class_id in (1, 5):
        head.set_recent(class_id, torch.rand(3, dtype=torch.float64), 2)
    trained = torch.tensor([[3.0, 0.0, 4.0], [0.0, 0.1, 0.0]])
    after = head.consolidated(trained, scale=5.0, norm=10.0)
    assert torch.allclose(after.weights(), torch.tensor([[6.0, 0.0, 8.0], [0.0, 10.0, 0.0]]))
    assert after.class_ids.tolist() == [1, 5] and after.counts.tolist() == [2, 2] and after.scale == 5.0
    assert torch.allclose(cosine_logits(trained, trained, 1.0), cosine_logits(trained, after.weights(), 1.0))


def test_state_round_trip() -> None:
    head = Head.empty(features=2, scale=1.5)
    head.set_recent(3, torch.ones(2), 1)
    head = head.consolidated(head.weights(), 2.5, 1.0)
    again = Head.from_state(head.state())
    assert again.class_ids.tolist() == [3] and again.counts.tolist() == [1] and again.scale == 2.5
    assert torch.equal(again.weights(), head.weights())
