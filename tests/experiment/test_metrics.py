"""Measures against NumPy and scikit-learn, cases worked out by hand, and their bounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import recall_score, top_k_accuracy_score

from siesta.errors import BadInput
from siesta.experiment.metrics import (
    NO_CLASS,
    Predictions,
    StepPredictions,
    alpha,
    forgetting,
    mean_and_std,
    mu,
    run_metrics,
)

Ints = npt.NDArray[np.int32]


def ranked(scores: npt.NDArray[np.float64], k: int = 5) -> Ints:
    """(n, C) -> the best k classes, `NONE` beyond C: (n, 5)."""
    best = np.argsort(-scores, axis=1)[:, :k].astype(np.int32)
    return np.pad(best, ((0, 0), (0, k - best.shape[1])), constant_values=NO_CLASS)


def answers(top1: list[int], truth: list[int]) -> Predictions:
    top = np.full((len(top1), 5), NO_CLASS, dtype=np.int32)
    top[:, 0] = top1
    return Predictions(top, np.array(truth, dtype=np.int32))


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(3, 9), st.sampled_from([1, 5]))
def test_accuracy_against_scikit_learn(seed: int, n: int, classes: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores, truth = rng.random((n, classes)), rng.integers(classes, size=n)
    predictions = Predictions(ranked(scores), truth)
    if k < classes:
        expected = 100 * top_k_accuracy_score(truth, scores, k=k, labels=np.arange(classes))
        assert predictions.accuracy(k) == pytest.approx(expected)
    else:
        assert predictions.accuracy(k) == 100
    assert 0 <= predictions.accuracy(1) <= predictions.accuracy(5) <= 100


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_per_class_is_recall(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    truth, guesses = rng.integers(6, size=n), rng.integers(6, size=n)
    per_class = answers(guesses.tolist(), truth.tolist()).per_class(1)
    present = np.unique(truth)
    recalls = 100 * recall_score(truth, guesses, labels=present, average=None)
    assert per_class == pytest.approx(dict(zip(present.tolist(), recalls.tolist(), strict=True)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sets(st.integers(0, 5)))
def test_the_weighted_mean_of_old_and_new_is_the_accuracy(seed: int, n: int, new: set[int]) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(6, size=n)
    predictions = Predictions(ranked(rng.random((n, 6))), truth)
    old, fresh = predictions.old_and_new(new, 5)
    count = sum(int(some) in new for some in truth)
    assert (fresh is None) == (count == 0)
    assert (old is None) == (count == n)
    assert (count * (fresh or 0) + (n - count) * (old or 0)) / n == pytest.approx(predictions.accuracy(5))


def test_a_missing_prediction_is_wrong() -> None:
    assert answers([NO_CLASS, NO_CLASS], [0, 1]).accuracy(5) == 0


@pytest.mark.parametrize(
    ("top", "truth"),
    [(np.zeros((2, 5)), np.zeros(3)), (np.zeros(5), np.zeros(5)), (np.zeros((0, 5)), np.zeros(0))],
)
def test_predictions_of_the_wrong_shape_are_refused(
    top: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]
) -> None:
    with pytest.raises(BadInput, match=r"\(n, k\) and \(n,\)"):
        Predictions(top.astype(np.int32), truth.astype(np.int32))


def test_a_negative_class_of_a_sample_is_refused() -> None:
    with pytest.raises(BadInput, match="never negative"):
        answers([0], [NO_CLASS])


@pytest.mark.parametrize("k", [0, 6])
def test_k_above_the_stored_classes_is_refused(k: int) -> None:
    with pytest.raises(BadInput, match="best 5"):
        answers([0], [0]).accuracy(k)


percents = st.lists(st.floats(0, 100), min_size=1, max_size=12)


@given(percents)
def test_mu_alpha_and_spread_against_numpy(values: list[float]) -> None:
    assert mu(values) == pytest.approx(np.mean(values))
    assert min(values) - 1e-9 <= mu(values) <= max(values) + 1e-9
    assert alpha(values) == values[-1]
    found = mean_and_std(values)
    assert found.count == len(values)
    if len(values) == 1:
        assert found.std is None
    else:
        assert found.std == pytest.approx(np.std(values, ddof=1))


def test_spread_as_text() -> None:
    assert str(mean_and_std([2.87, 5.63])) == "4.25±1.95"
    assert str(mean_and_std([83.59])) == "83.59"


def test_empty_sequences_have_no_mean() -> None:
    with pytest.raises(BadInput):
        mu([])
    with pytest.raises(BadInput):
        alpha([])


def test_forgetting_by_hand() -> None:
    history = [{0: 90.0, 1: 80.0}, {0: 95.0, 1: 60.0, 2: 70.0}, {0: 85.0, 1: 65.0, 2: 75.0, 3: 10.0}]
    assert forgetting(history) == pytest.approx(((95 - 85) + (80 - 65) + (70 - 75)) / 3)
    assert forgetting(history[:1]) is None
    assert forgetting([]) is None


@given(st.lists(st.lists(st.floats(0, 100), min_size=4, max_size=4), min_size=2, max_size=6))
def test_forgetting_against_chaudhry_s_matrix(rows: list[list[float]]) -> None:
    """a[l, j] with as many tasks at every step: f = max over l < k of a[l, j] - a[k, j]."""
    matrix = np.array(rows)
    expected = float((matrix[:-1].max(axis=0) - matrix[-1]).mean())
    found = forgetting([dict(enumerate(row)) for row in rows])
    assert found == pytest.approx(expected, abs=1e-9)
    assert found is not None
    assert -100 <= found <= 100


def test_a_run_by_hand() -> None:
    steps = [
        StepPredictions(answers([0, 0, 1, 1], [0, 0, 1, 1]), frozenset({0, 1})),
        StepPredictions(
            answers([0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2]),
            frozenset({2}),
            before=answers([0, 1, 1, 0, 2, 0], [0, 0, 1, 1, 2, 2]),
        ),
        StepPredictions(
            answers([0, 2, 2, 2, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2, 3, 3]),
            frozenset({3}),
            before=answers([0, 2, 2, 2, 2, 0, 0, 0], [0, 0, 1, 1, 2, 2, 3, 3]),
        ),
    ]
    found = run_metrics(steps, 1)
    assert found.after == pytest.approx([100, 500 / 6, 500 / 8])
    assert found.before == [None, pytest.approx(50), pytest.approx(25)]
    assert found.mu == pytest.approx((100 + 500 / 6 + 500 / 8) / 3)
    assert found.alpha == pytest.approx(62.5)
    assert found.gain is not None
    assert found.gain.mean == pytest.approx((500 / 6 - 50 + 37.5) / 2)
    assert found.gain.count == 2
    assert found.old == [None, pytest.approx(75), pytest.approx(50)]
    assert found.new == [100, 100, 100]
    assert found.per_class == {0: 50, 1: 0, 2: 100, 3: 100}
    assert found.forgetting == pytest.approx((50 + 100 + 0) / 3)
    assert found.forgetting_of_steps == pytest.approx((75 + 0) / 2)  # classes 0 and 1 came together: 100 -> 25


def test_a_method_without_sleep_has_no_gain() -> None:
    found = run_metrics([StepPredictions(answers([0], [0]), frozenset({0}))], 5)
    assert found.gain is None
    assert found.forgetting is None


def test_a_class_that_comes_back_belongs_to_the_step_it_first_came_in() -> None:
    steps = [
        StepPredictions(answers([0, 0], [0, 0]), frozenset({0})),
        StepPredictions(answers([1, 1], [0, 1]), frozenset({0, 1})),
    ]
    assert run_metrics(steps, 1).forgetting_of_steps == 100
