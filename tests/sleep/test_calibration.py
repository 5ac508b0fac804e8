"""Calibrated scores, thresholds, and when an accuracy has fallen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from statsmodels.stats.proportion import proportion_confint

from siesta import Siesta
from siesta.errors import BadInput
from siesta.sleep.calibration import UNKNOWN, Confidence, Scores, softmax
from tests.learner.colours import picture


def test_the_fitted_temperature_is_that_of_the_data() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (20_000, 5))
    chances = np.exp(logits / 2.5) / np.exp(logits / 2.5).sum(axis=1, keepdims=True)
    rows = (rng.random((len(logits), 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=4)
    found = Confidence.of(logits, rows)
    assert found.temperature == pytest.approx(2.5, rel=0.05)
    scores, right = np.array(found.right + found.wrong), np.array([1] * len(found.right) + [0] * len(found.wrong))
    for low in (0.3, 0.5, 0.7):
        some = (scores >= low) & (scores < low + 0.1)
        assert right[some].mean() == pytest.approx(scores[some].mean(), abs=0.03)


def confidence_of(scores: Scores, wrong: npt.NDArray[np.bool_]) -> Confidence:
    right, errors = (tuple(np.sort(part).tolist()) for part in (scores[~wrong], scores[wrong]))
    return Confidence(1.0, right, errors, independent=True)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.25])
def test_the_error_rate_is_kept_with_the_confidence_that_is_promised(rate: float) -> None:
    """Over many sets of held-out samples: the true error rate above the threshold, which is known here."""
    rng = np.random.default_rng(1)
    broken = shown = 0
    for _ in range(400):
        scores = rng.random(150)  # an answer with score p is wrong with a chance of (1 - p) / 2
        confidence = confidence_of(scores, rng.random(150) < (1 - scores) / 2)
        try:
            least = confidence.threshold(rate)
        except BadInput:
            continue
        shown += 1
        broken += (1 - least) / 4 > rate
    assert broken <= 0.05 * 400 + 3 * math.sqrt(400 * 0.05 * 0.95)
    assert rate < 0.1 or shown > 50, "it is not always refused"


def test_a_threshold_is_the_first_of_a_row_of_bounds_that_fails() -> None:
    rng = np.random.default_rng(1)
    scores, rate = np.sort(rng.beta(4, 2, 300))[::-1], 0.1
    wrong = rng.random(300) < 0.4 * (1 - scores)
    least = confidence_of(scores, wrong).threshold(rate)
    bounds = [proportion_confint(wrong[:n].sum(), n, alpha=0.1, method="beta")[1] for n in range(29, 301)]
    accepted = int((scores >= least).sum())
    assert 29 <= accepted < 300 and bounds[accepted - 29] <= rate < bounds[accepted - 28]
    assert all(bound <= rate for bound in bounds[: accepted - 28])
    assert confidence_of(scores, wrong).threshold(0.5) == 0.0, "every answer is accepted"


def test_more_samples_allow_smaller_rates_and_rates_differ() -> None:
    """With all held-out samples right, every rate had the same threshold once."""
    least = [confidence_of(np.linspace(0.5, 1, n), np.zeros(n, bool)).least_error_rate for n in (10, 30, 60, 300)]
    assert least == [0.259, 0.096, 0.049, 0.01]
    for n, rate in zip((10, 30, 60, 300), least, strict=True):
        assert rate is not None
        confidence = confidence_of(np.linspace(0.5, 1, n), np.zeros(n, bool))
        assert confidence.threshold(rate) == 0.0
        with pytest.raises(BadInput, match=r"cannot show an error rate of .*: \d+ or more are needed"):
            confidence.threshold(0.9 * rate)
    assert confidence_of(np.array([0.5, 0.9]), np.array([False, True])).least_error_rate is None


def test_equal_scores_are_accepted_together() -> None:
    confidence = Confidence(1.0, (0.4,) * 30 + (0.9,) * 40, (0.4,) * 9, independent=True)
    least = confidence.threshold(0.1)
    assert 0.4 < least < 0.9 and confidence.least_error_rate == 0.073
    with pytest.raises(BadInput, match=r"certain answers to them are wrong; ask for 7\.3 % or"):
        Confidence(1.0, (0.4,) * 30 + (0.9,) * 40, (0.4,) * 9, independent=True).threshold(0.06)


def test_what_cannot_be_promised_is_refused() -> None:
    confidence = Confidence(1.0, (0.9,) * 40, (), independent=True)
    assert confidence.threshold(0.1) == 0.0
    for rate in (0.0, 1.0, float("nan")):
        with pytest.raises(BadInput, match="error rate must be above 0 and below 1"):
            confidence.threshold(rate)
    with pytest.raises(BadInput, match="40 held-out samples cannot show an error rate of 1 %: 299 or more are needed"):
        confidence.threshold(0.01)
    with pytest.raises(BadInput, match="40 held-out samples cannot show"):
        confidence.threshold(5e-324)
    with pytest.raises(BadInput, match="held-out samples that decided nothing about the last sleep"):
        replace(confidence, independent=False).threshold(0.1)
    assert replace(confidence, independent=False).least_error_rate is None
    with pytest.raises(BadInput, match="teach 20 of a class and sleep"):
        Confidence.from_state(None).threshold(0.1)


def test_a_state_is_read_as_it_was_written() -> None:
    confidence = Confidence(1.5, (0.4, 0.9), (0.3,), independent=True)
    assert Confidence.from_state(confidence.state()) == confidence
    older = {name: value for name, value in confidence.state().items() if name != "independent"}
    assert Confidence.from_state(older) == replace(confidence, independent=False)
    assert confidence.interval == pytest.approx((0.094, 0.992), abs=1e-3)


def test_familiarity_is_high_where_right_answers_are_close_and_certain() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 1, (400, 3))
    rows = np.where(rng.random(400) < 0.8, logits.argmax(axis=1), 0)
    closeness = rng.uniform(0.1, 0.5, 400)
    found = Confidence.of(logits, rows, closeness)
    assert found.needs_closeness and Confidence.from_state(found.state()) == found
    right = np.array(found.right)
    assert (right < 0.5).mean() == pytest.approx(0.05, abs=0.01) and np.median(right) == pytest.approx(0.9, abs=0.005)
    scores = softmax(logits / found.temperature).max(axis=1)
    familiarity = found.familiarity(scores, closeness)
    assert (np.argsort(familiarity) == np.argsort(np.sqrt(scores) * closeness)).all()
    assert sorted([*found.right, *found.wrong]) == pytest.approx(np.sort(familiarity), abs=1e-5)
    assert found.familiarity(np.array([0.9]), np.array([-0.2]))[0] < 0.01


def test_familiarity_is_the_score_without_enough_right_answers_or_without_closeness() -> None:
    logits, rows = 5.0 * np.eye(19), np.arange(19)
    for found in (Confidence.of(logits, rows, np.full(19, 0.3)), Confidence.of(np.eye(40), np.arange(40))):
        assert not found.needs_closeness
        scores = np.array([0.2, 0.7])
        assert found.familiarity(scores, np.array([0.1, 0.1])).tolist() == scores.tolist()
    with_closeness = Confidence.of(np.eye(40), np.arange(40), np.full(40, 0.3))
    assert with_closeness.familiarity(np.array([0.7]), None).tolist() == [0.7], "a cosine head says none"


def test_few_samples_leave_the_temperature_at_one() -> None:
    found = Confidence.of(np.eye(4), np.arange(4))
    assert (found.temperature, found.samples, found.accuracy) == (1.0, 4, 1.0)
    assert Confidence.of(np.zeros((0, 3)), np.zeros(0, int)).accuracy is None


@pytest.mark.parametrize(
    ("before", "after", "worse"), [((8, 4), (3, 9), True), ((6, 0), (5, 1), False), ((400, 100), (350, 150), True)]
)
def test_worse_means_by_more_than_chance(before: tuple[int, int], after: tuple[int, int], worse: bool) -> None:
    old, new = (Confidence(1.0, (0.9,) * right, (0.5,) * wrong) for right, wrong in (before, after))
    assert new.is_worse_than(old, tolerance=0.05) == worse
    assert not new.is_worse_than(old, tolerance=1.0)
    assert not old.is_worse_than(new, tolerance=0.0)
    assert not new.is_worse_than(Confidence.from_state(None), tolerance=-1.0), "without samples nothing is known"


def test_a_damaged_state_counts_as_none() -> None:
    for state in ({}, {"temperature": 1.0, "right": 3, "wrong": []}, {"temperature": "hot", "right": [], "wrong": []}):
        assert Confidence.from_state(state) == Confidence(1.0, (), ())


def test_predictions_below_the_threshold_are_unknown() -> None:
    with Siesta.create(":memory:", image_size=32) as learner:
        labels = ("red", "green")
        for number in range(60):
            learner.learn_many([picture(label, number) for label in labels], labels)
        before = learner.predict_one(picture("red", 99), threshold=0.999999)
        assert (before.label, before.known) == (UNKNOWN, False)
        assert before.top[0][0] == "red"
        with pytest.raises(BadInput, match="there are no held-out samples yet"):
            learner.predict_one(picture("red", 99), error_rate=0.1)
        learner.sleep(updates=400, batch_size=20)
        known = [learner.predict_one(picture(label, 200 + number)) for number in range(5) for label in labels]
        least = min(answer.score for answer in known)
        assert all(answer.known for answer in known)
        with pytest.raises(BadInput, match="held-out samples that decided nothing"):
            learner.threshold(0.1)
        asked = [picture(label, 99) for label in ("red", "green")]
        answers = learner.predict_many(asked, threshold=0.5 * least)
        assert [answer.label for answer in answers] == ["red", "green"]
