"""scikit-learn's own checks, and what they do not know: pictures, folders, new classes, text labels."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from siesta import Siesta
from siesta.errors import BadInput
from siesta.wrappers.sklearn import SiestaClassifier
from tests.learner.colours import labelled_pictures

CHECKS = [
    (estimator, check)
    for estimator in (SiestaClassifier(memory="4MB"), SiestaClassifier(memory="4MB", random_features=0, head="cosine"))
    for _, check in estimator_checks_generator(estimator, legacy=True)
]
NEEDS_ENVIRONMENT = "check_array_api_input"  # it runs with SCIPY_ARRAY_API set before SciPy is imported


def name_of(check: Callable[..., Any]) -> str:
    return check.func.__name__ if isinstance(check, partial) else check.__name__


@pytest.mark.parametrize(
    ("estimator", "check"),
    [pair for pair in CHECKS if name_of(pair[1]) != NEEDS_ENVIRONMENT],
    ids=[
        f"{estimator.head}-{index}-{name_of(check)}"
        for index, (estimator, check) in enumerate(CHECKS)
        if name_of(check) != NEEDS_ENVIRONMENT
    ],
)
def test_check_estimator(estimator: SiestaClassifier, check: Callable[..., None]) -> None:
    check(clone(estimator))


def pictures() -> tuple[Any, Any]:
    images, labels = labelled_pictures(6)
    return np.stack(images), np.array(labels)


def test_random_features_separate_what_no_plane_does() -> None:
    rows, labels = make_moons(300, noise=0.1, random_state=0)
    model = SiestaClassifier(memory="4MB", gamma=2.0)
    assert cross_val_score(model, rows, labels, cv=3).mean() > 0.95


def test_pictures_work_in_a_pipeline_and_in_cross_val_score() -> None:
    images, labels = pictures()
    model = make_pipeline(FunctionTransformer(), SiestaClassifier(image_size=32, memory="1MB"))
    assert cross_val_score(model, images, labels, cv=3).mean() == 1.0
    model.fit(images, labels)
    assert model.predict_proba(images[:2]).sum(axis=1) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="not \\(18, 32, 32, 3\\) of float64"):
        model.predict(images / 255)
    with pytest.raises(ValueError, match="18 pictures have 17 labels"):
        model.fit(images, labels[1:])


def test_a_grid_search_finds_options() -> None:
    rows, labels = make_moons(90, noise=0.1, random_state=0)
    search = GridSearchCV(SiestaClassifier(memory="4MB"), {"random_features": [2, 64]}, cv=2).fit(rows, labels)
    assert search.best_params_ == {"random_features": 64}


def test_new_classes_come_at_any_time_and_named_ones_have_a_column() -> None:
    images, labels = pictures()
    model = SiestaClassifier(image_size=32, memory="1MB")
    model.partial_fit(images[labels == "red"], labels[labels == "red"], classes=["red", "white"])
    assert model.predict_proba(images[:1]).tolist() == [[1.0, 0.0]]
    model.partial_fit(images[labels != "red"], labels[labels != "red"])
    assert model.classes_.tolist() == ["blue", "green", "red", "white"]
    assert model.score(images, labels) == 1.0


def test_a_learner_in_a_folder_is_created_by_fit_and_continued_by_partial_fit(tmp_path: Path) -> None:
    images, labels = pictures()
    folder = str(tmp_path / "colours.siesta")
    model = SiestaClassifier(folder, image_size=32, memory="1MB").fit(images, labels)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(images) == labels).all()
    copy.learner_.close()
    with Siesta.open(folder) as learner:
        assert [record.taught for record in learner.classes()] == [6, 6, 6]
    again = SiestaClassifier(folder).partial_fit(images[:2], ["pink", "pink"])
    assert again.classes_.tolist() == ["blue", "green", "pink", "red"]
    with pytest.raises(BadInput, match="exists already"):
        SiestaClassifier(folder).fit(images, labels)
    again.learner_.close()


def test_a_sleep_and_rejections_go_along_in_a_pickle() -> None:
    images, labels = pictures()
    model = SiestaClassifier(image_size=32, memory="1MB", updates=8).fit(images, labels)
    assert model.learner_.generation == 1
    model.learner_.reject(images[0], "red")
    copy = pickle.loads(pickle.dumps(model))
    assert copy.learner_.rejections() == model.learner_.rejections() != {}
    assert np.array_equal(copy.predict_proba(images), model.predict_proba(images))
    assert copy.predict_proba(images[:1])[0, 2] == 0.0
    copy.learner_.sleep(updates=8)
    assert (copy.learner_.generation, model.learner_.generation) == (2, 1)


def test_labels_that_are_the_same_text_are_refused() -> None:
    with pytest.raises(ValueError, match="the same text"):
        SiestaClassifier().fit(np.zeros((2, 3)), [" a", "a"])
