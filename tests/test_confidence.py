"""Scores that can be trusted, and answers that are not given."""

from __future__ import annotations

import numpy as np
import pytest

from siesta import Siesta
from siesta.confidence import UNKNOWN, Confidence
from siesta.errors import BadInput
from tests.test_learner import picture


def test_the_temperature_is_the_one_that_made_the_answers() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (20_000, 5))
    chances = np.exp(logits / 2.5) / np.exp(logits / 2.5).sum(axis=1, keepdims=True)
    truth = (rng.random((len(logits), 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=4)
    found = Confidence.of(logits, truth)
    assert found.temperature == pytest.approx(2.5, rel=0.05)
    scores, right = np.array(found.right + found.wrong), np.array([1] * len(found.right) + [0] * len(found.wrong))
    for low in (0.3, 0.5, 0.7):
        some = (scores >= low) & (scores < low + 0.1)
        assert right[some].mean() == pytest.approx(scores[some].mean(), abs=0.03)


def test_a_threshold_keeps_the_error_rate_and_is_the_lowest_that_does() -> None:
    rng = np.random.default_rng(1)
    confidence = Confidence(1.0, tuple(sorted(rng.beta(4, 2, 500))), tuple(sorted(rng.beta(2, 4, 200))))
    right, wrong = np.array(confidence.right), np.array(confidence.wrong)
    for rate in (0.0, 0.02, 0.1, 0.25):
        least = confidence.threshold(rate)
        assert (wrong >= least).sum() <= rate * ((wrong >= least).sum() + (right >= least).sum())
        lower = [some for some in (*right, *wrong) if some < least]
        assert all((wrong >= some).sum() > rate * ((wrong >= some).sum() + (right >= some).sum()) for some in lower)
    assert Confidence(1.0, (), (0.9,)).threshold(0.1) == 1.0
    with pytest.raises(BadInput, match="an error rate lies"):
        confidence.threshold(1.0)
    with pytest.raises(BadInput, match="teach 20 of a class and sleep"):
        Confidence.from_state(None).threshold(0.1)
    assert Confidence.from_state(confidence.state()) == confidence


def test_few_samples_leave_scores_as_they_are() -> None:
    found = Confidence.of(np.eye(4), np.arange(4))
    assert (found.temperature, found.asked, found.accuracy) == (1.0, 4, 1.0)
    assert Confidence.of(np.zeros((0, 3)), np.zeros(0, int)).accuracy is None


def test_what_was_never_taught_is_unknown_and_most_of_what_was_is_known() -> None:
    with Siesta.create(":memory:", image_size=32) as learner:
        labels = ("red", "green")
        for number in range(60):
            learner.learn_many([picture(label, number) for label in labels], labels)
        before = learner.predict_one(picture("red", 99), threshold=0.999999)
        assert (before.label, before.known) == (UNKNOWN, False)
        assert before.top[0][0] == "red"
        with pytest.raises(BadInput, match="no samples are held out"):
            learner.predict_one(picture("red", 99), error_rate=0.1)
        learner.sleep(updates=400, batch_size=20)
        known = [learner.predict_one(picture(label, 200 + number)) for number in range(5) for label in labels]
        least = min(answer.score for answer in known)
        assert all(answer.known for answer in known)
        assert learner.threshold(0.1) <= 1.0
        asked = [picture(label, 99) for label in ("red", "green")]
        answers = learner.predict_many(asked, threshold=0.5 * least)
        assert [answer.label for answer in answers] == ["red", "green"]
