"""The head against the paper's equations, written out in NumPy."""

from __future__ import annotations

import numpy as np

from siesta.head import Head
from siesta.head.cosine import unit_vectors
from siesta.sleep.calibration import softmax


def test_probabilities_are_the_cosine_softmax_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5, 7))
    vectors = rng.normal(size=(3, 7))
    scale = 9.0
    cosine = (features @ vectors.T) / np.linalg.norm(features, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    expected = np.exp(cosine * scale) / np.exp(cosine * scale).sum(axis=1, keepdims=True)
    head = Head(np.arange(3), vectors.astype(np.float32), np.ones(3, np.int64), scale)
    np.testing.assert_allclose(softmax(head.logits(features.astype(np.float32))), expected, rtol=1e-5)


def test_running_mean_is_the_recursion_of_the_paper_over_generations() -> None:
    """f <- (c f + z) / (c + 1), c <- c + 1, through a sleep that replaces f and leaves c."""
    rng = np.random.default_rng(1)
    head = Head.empty(features=4, scale=10.0)
    f = np.zeros(4)
    c = 0
    total = np.zeros(4)
    for count, z in enumerate(rng.normal(size=(6, 4)), start=1):
        f = (c * f + z) / (c + 1)
        c += 1
        total = total + z
        head.set_recent(7, total, count)
    np.testing.assert_allclose(head.weights()[0], f, rtol=1e-6)
    trained = rng.normal(size=4)
    head = head.after_sleep(trained.astype(np.float32)[None], scale=11.0, norm=2.5)
    f, total = 2.5 * trained / np.linalg.norm(trained), np.zeros(4)
    np.testing.assert_allclose(head.weights()[0], f, rtol=1e-6)
    for count, z in enumerate(rng.normal(size=(3, 4)), start=1):
        f = (c * f + z) / (c + 1)
        c += 1
        total = total + z
        head.set_recent(7, total, count)
    np.testing.assert_allclose(head.weights()[0], f, rtol=1e-6)
    assert head.count(7) == c == 9


def test_consolidation_keeps_directions_and_evens_lengths() -> None:
    head = Head.empty(features=3, scale=4.0)
    for class_id in (1, 5):
        head.set_recent(class_id, np.random.default_rng(class_id).random(3), 2)
    trained = np.array([[3.0, 0.0, 4.0], [0.0, 0.1, 0.0]], np.float32)
    after = head.after_sleep(trained, scale=5.0, norm=10.0)
    assert np.allclose(after.weights(), [[6.0, 0.0, 8.0], [0.0, 10.0, 0.0]])
    assert after.class_ids.tolist() == [1, 5] and after.counts.tolist() == [2, 2] and after.scale == 5.0
    assert np.allclose(unit_vectors(after.weights()), unit_vectors(trained))


def test_state_round_trip() -> None:
    head = Head.empty(features=2, scale=1.5)
    head.set_recent(3, np.ones(2), 1)
    head = head.after_sleep(head.weights(), 2.5, 1.0)
    again = Head.from_state(head.state())
    assert again.class_ids.tolist() == [3] and again.counts.tolist() == [1] and again.scale == 2.5
    assert np.array_equal(again.weights(), head.weights())


def test_many_classes_keep_their_rows() -> None:
    head = Head.empty(features=8, scale=1.0)
    for class_id in range(1, 300):
        head.set_recent(class_id, np.full(8, float(class_id)), 1)
    assert head.class_ids.tolist() == list(range(1, 300))
    assert head.weights()[:, 0].tolist() == [float(class_id) for class_id in range(1, 300)]


def test_a_vector_of_zeros_has_no_direction() -> None:
    assert unit_vectors(np.zeros((2, 3), np.float32)).tolist() == [[0.0] * 3] * 2
