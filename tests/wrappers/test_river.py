"""River's own checks, and pictures."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from river import checks, evaluate, metrics, preprocessing
from river.datasets import ImageSegments

from siesta.errors import BadInput
from siesta.wrappers.river import SiestaClassifier
from tests.learner.colours import labelled_pictures, picture

MODEL = SiestaClassifier(memory="1MB", random_features=32)
CHECKS = list(checks.yield_checks(MODEL))


@pytest.mark.parametrize("check", CHECKS, ids=[f"{index}-{check.__name__}" for index, check in enumerate(CHECKS)])
def test_check_estimator(check: Callable[[SiestaClassifier], None]) -> None:
    check(MODEL.clone())


def test_it_learns_a_stream_of_seven_classes() -> None:
    model = preprocessing.StandardScaler() | SiestaClassifier(memory="1MB")
    stream: Any = ImageSegments
    accuracy: Any = metrics.Accuracy
    assert evaluate.progressive_val_score(stream().take(400), model, accuracy()).get() > 0.75


@pytest.mark.parametrize("wrapped", [False, True])
def test_pictures_are_learned_as_they_are_or_in_a_dict(wrapped: bool) -> None:
    model = SiestaClassifier(image_size=32, memory="1MB")
    assert model.predict_one({"image": picture("red")}) is None
    for image, label in zip(*labelled_pictures(4), strict=True):
        model.learn_one({"image": image} if wrapped else image, label)
    assert model.predict_one({"image": picture("red", 9)}) == "red"
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict_proba_one(picture("blue", 9)) == model.predict_proba_one(picture("blue", 9))


def test_labels_keep_their_type_and_text_is_a_feature() -> None:
    model = SiestaClassifier(memory="1MB")
    for number in range(20):
        model.learn_one({"weather": "rain", "hour": number / 20}, 7)
        model.learn_one({"weather": "sun", "hour": number / 20}, False)
    assert model.predict_one({"weather": "rain", "hour": 0.5}) == 7
    assert model.predict_one({"weather": "sun"}) is False
    assert sum(model.predict_proba_one({}).values()) == pytest.approx(1)


@pytest.mark.parametrize("value", [None, float("nan"), np.zeros(3)])
def test_a_feature_that_is_no_number_is_named(value: object) -> None:
    with pytest.raises(BadInput, match="the feature 'hour' is"):
        SiestaClassifier(memory="1MB").learn_one({"hour": value}, 1)
