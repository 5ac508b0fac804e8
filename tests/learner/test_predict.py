"""Predictions: order, scores, thresholds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from siesta import BadInput, Siesta
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small


@pytest.fixture(scope="module")
def taught() -> Siesta:
    learner = create_small()
    learner.learn_many(*labelled_pictures(3))
    return learner


def test_scores_are_the_softmax_of_the_cosines() -> None:
    taught = create_small(head="cosine")
    taught.learn_many(*labelled_pictures(3))
    images = [picture(label, 9) for label in COLOURS]
    logits = taught.head.logits(taught.pipeline.features(taught.encode(images))).astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = odds / odds.sum(axis=1, keepdims=True)
    for prediction, scores in zip(taught.predict_many(images, top=3), expected, strict=True):
        assert [score for _, score in prediction.top] == pytest.approx(sorted(scores, reverse=True), abs=1e-5)
        best = ["red", "green", "blue"][int(np.argmax(scores))]
        assert (prediction.label, prediction.score) == prediction.top[0] and prediction.label == best


def test_as_many_labels_are_returned_as_asked_for(taught: Siesta) -> None:
    assert [len(taught.predict_one(picture("red"), top).top) for top in (1, 2, 3, 50)] == [1, 2, 3, 3]
    with pytest.raises(BadInput, match="top is 0: ask for at least one label"):
        taught.predict_one(picture("red"), top=0)


def test_more_images_than_one_batch_are_predicted_in_order(taught: Siesta) -> None:
    images = [picture(label, seed) for seed in range(15) for label in ("red", "green", "blue")]
    predictions = taught.predict_many(iter(images))
    expected = [taught.predict_one(image) for image in images]
    assert [prediction.label for prediction in predictions] == [prediction.label for prediction in expected]
    assert [prediction.score for prediction in predictions] == pytest.approx(
        [prediction.score for prediction in expected], abs=1e-4
    )
    assert taught.predict_many([]) == []


def test_below_the_threshold_the_label_is_unknown(taught: Siesta) -> None:
    score = taught.predict_one(picture("red")).score
    known = taught.predict_one(picture("red"), threshold=score)
    unknown = taught.predict_one(picture("red"), threshold=min(score + 1e-3, 1.0))
    assert known.known and known.label == "red"
    assert not unknown.known and unknown.label == "unknown"
    assert unknown.top == known.top, "the ranking stays"


@pytest.mark.parametrize("threshold", [float("nan"), -0.1, 1.1])
def test_a_threshold_outside_0_to_1_is_refused(taught: Siesta, threshold: float) -> None:
    with pytest.raises(BadInput, match=r"threshold is .*: give a number from 0 to 1"):
        taught.predict_one(picture("red"), threshold=threshold)


def test_an_error_rate_needs_held_out_samples(taught: Siesta) -> None:
    with pytest.raises(BadInput, match="held-out samples"):
        taught.predict_one(picture("red"), error_rate=0.1)


def test_an_empty_learner_predicts_nothing() -> None:
    with create_small() as learner, pytest.raises(BadInput, match="not taught anything yet"):
        learner.predict_one(picture("red"))
