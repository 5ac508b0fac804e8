"""A learner folder made by version 0.1 opens, answers as before, sleeps and passes its check."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.learner.integrity import check

FIXTURE = Path(__file__).parent / "fixtures" / "learner_0_1"
Pictures = npt.NDArray[np.uint8]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The learner folder as version 0.1 left it."""
    with tarfile.open(FIXTURE / "colours.siesta.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "colours.siesta"


@pytest.fixture(scope="module")
def questions() -> Pictures:
    with np.load(FIXTURE / "questions.npz") as file:
        pictures: Pictures = file["pictures"]
    return pictures


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    values: dict[str, Any] = json.loads((FIXTURE / "expected.json").read_text("utf-8"))
    return values


def test_it_answers_with_the_same_labels_and_scores(
    folder: Path, questions: Pictures, expected: dict[str, Any]
) -> None:
    with Siesta.open(folder, read_only=True) as learner:
        answers = learner.predict_many(questions)
    for answer, before in zip(answers, expected["answers"], strict=True):
        assert answer.label == before["label"]
        assert [label for label, _ in answer.top] == [label for label, _ in before["top"]]
        scores = [score for _, score in before["top"]]
        assert [score for _, score in answer.top] == pytest.approx(scores, abs=1e-4)


def test_its_info_says_the_same(folder: Path, expected: dict[str, Any]) -> None:
    with Siesta.open(folder, read_only=True) as learner:
        info = learner.info().as_dict()
    assert info["classes"] == expected["classes"]
    assert info["samples"] == expected["samples"]
    assert info["bytes"]["statistics"] == 0, "its head has none"
    assert {name: info["bytes"][name] for name in expected["bytes"]} == expected["bytes"]
    assert [sleep["updates"] for sleep in info["sleeps"]] == expected["sleeps"]


def test_it_learns_sleeps_and_passes_its_check(folder: Path, questions: Pictures) -> None:
    with pytest.raises(BadInput, match="older siesta: open it once, then check it"):
        check(folder)
    Siesta.open(folder, read_only=True).close()
    assert check(folder) == []
    with Siesta.open(folder) as learner:
        learner.learn_many(questions[6:], ["yellow", "yellow"])
        report = learner.sleep(updates=16, batch_size=8)
        assert (report.generation, report.updates, report.classes) == (2, 16, 4)
        assert learner.predict_one(questions[6]).label == "yellow"
    assert check(folder) == []


def test_a_sleep_that_is_used_gives_it_a_discriminant(folder: Path, questions: Pictures) -> None:
    with Siesta.open(folder) as learner:
        assert learner.info().head == "cosine"
        report = learner.sleep(updates=16, batch_size=8, tolerance=1.0)
        assert report.used and learner.info().head == "discriminant"
        answers = learner.predict_many(questions)
    assert check(folder) == []
    with Siesta.open(folder, read_only=True) as learner:
        assert learner.info().head == "discriminant" and learner.predict_many(questions) == answers
