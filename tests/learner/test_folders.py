"""Teaching and asking by folders: nothing twice, nothing lost, what cannot be read is listed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.folders import (
    PredictedFile,
    accuracies,
    learn_files,
    predict_files,
    rejection_rates,
    valid_labelled_files,
)
from siesta.learner.info import SampleInfo
from tests.small import create_small

MakePictures = Any


@pytest.fixture
def learner() -> Iterator[Siesta]:
    with create_small(memory="1MB") as made:
        yield made


def statuses(learner: Siesta, folder: Path) -> Counter[str]:
    return Counter(outcome.status for outcome in learn_files(learner, valid_labelled_files(folder)))


def taught(learner: Siesta) -> dict[str, int]:
    return {entry.label: entry.taught for entry in learner.info().classes}


def test_each_file_is_learned_once(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    assert statuses(learner, folder) == {"learned": 40}
    assert statuses(learner, folder) == {"known": 40}
    assert taught(learner) == {"a": 20, "b": 20}


@pytest.mark.parametrize("seen", [1, 31, 32, 33, 40])
def test_an_interrupted_run_continues_and_learns_nothing_twice(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures, seen: int
) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    outcomes = learn_files(learner, valid_labelled_files(folder))
    learned = [next(outcomes) for _ in range(seen)]
    assert sum(taught(learner).values()) >= len(learned)  # an outcome comes when it is stored
    del outcomes
    again = statuses(learner, folder)
    assert again["known"] >= seen
    assert again["known"] + again["learned"] == 40
    assert taught(learner) == {"a": 20, "b": 20}


def test_an_interrupted_run_ends_in_the_same_state(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    probe = folder / "a" / "0.png"
    answers = []
    for stop in (True, False):
        with create_small(memory=64 * 10) as learner:
            if stop:
                next(learn_files(learner, valid_labelled_files(folder)))
            statuses(learner, folder)
            answers.append((learner.predict_one(probe), learner.info().classes))
    assert answers[0] == answers[1]


def test_evicted_samples_are_still_known(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=10)
    with create_small(memory=64 * 4) as learner:
        assert statuses(learner, folder) == {"learned": 20}
        assert learner.info().samples == SampleInfo(stored=4, capacity=4)
        assert statuses(learner, folder) == {"known": 20}


def test_the_same_image_with_another_name_or_label_is_learned(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=1)
    shutil.copy(folder / "a" / "0.png", folder / "a" / "copy.png")
    shutil.copy(folder / "a" / "0.png", folder / "b" / "copy.png")
    assert statuses(learner, folder) == {"learned": 4}
    moved = folder.rename(tmp_path / "elsewhere")
    assert statuses(learner, moved) == {"known": 4}
    shutil.copy(folder.with_name("elsewhere") / "b" / "0.png", moved / "a" / "0.png")  # same name, new contents
    assert statuses(learner, moved) == {"known": 3, "learned": 1}


def test_unreadable_files_are_skipped_and_reported(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=2)
    (folder / "a" / "1b.txt").write_text("no picture")
    (folder / "b" / "empty.png").write_bytes(b"")
    outcomes = list(learn_files(learner, valid_labelled_files(folder)))
    assert [outcome.status for outcome in outcomes] == [
        "learned",
        "learned",
        "ignored",
        "learned",
        "learned",
        "unreadable",
    ]
    for outcome in outcomes:
        assert (outcome.path.name in outcome.reason) == (outcome.status in ("unreadable", "ignored"))
    assert statuses(learner, folder) == {"known": 4, "ignored": 1, "unreadable": 1}
    shutil.copy(folder / "a" / "0.png", folder / "b" / "empty.png")
    assert statuses(learner, folder) == {"known": 4, "ignored": 1, "learned": 1}


def test_files_that_disappear_or_fail_are_skipped(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a"], each=3)
    (folder / "a" / "bad sector.png").symlink_to("/proc/self/mem")  # a file whose bytes the system refuses
    files = valid_labelled_files(folder)
    assert len(files) == 4
    (folder / "a" / "1.png").unlink()
    found = {outcome.path.name: outcome.status for outcome in learn_files(learner, files)}
    assert found == {"0.png": "learned", "1.png": "unreadable", "2.png": "learned", "bad sector.png": "unreadable"}
    answers = list(predict_files(learner, files))
    assert [bool(answer.reason) for answer in answers] == [bool(not answer.top) for answer in answers]
    assert sum(bool(answer.top) for answer in answers) == 2


def test_labels_are_validated_before_anything_is_learned(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "new\nline"], each=1)
    with pytest.raises(BadInput, match="control"):
        valid_labelled_files(folder)


def test_labels_are_compared_in_unicode_nfc(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", [" Cafe\u0301", "b", "c", "d", "e", "f"], each=6)
    statuses(learner, folder)
    (folder / "b" / "broken.png").write_bytes(b"x")
    answers = list(predict_files(learner, valid_labelled_files(folder)))
    assert [answer.path for answer in answers] == [path for path, _ in valid_labelled_files(folder)]
    assert all(len(answer.top) == 5 for answer in answers if not answer.reason)
    result = accuracies(answers)
    assert result["n"] == 36
    assert result["per_class"].keys() == {"Caf\u00e9", "b", "c", "d", "e", "f"}
    assert result["top1"] > 80


def test_prediction_changes_nothing(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=2)
    statuses(learner, folder)
    before = learner.info()
    assert list(predict_files(learner, valid_labelled_files(folder))) == list(
        predict_files(learner, valid_labelled_files(folder))
    )
    assert learner.info() == before


def test_prediction_with_an_empty_learner_is_refused(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a"], each=1)
    with pytest.raises(BadInput, match="not taught anything"):
        list(predict_files(learner, valid_labelled_files(folder)))


def test_accuracies_are_percent_of_the_readable_files() -> None:
    answers = [
        PredictedFile(Path("1"), "a", ("a", "b", "c")),
        PredictedFile(Path("2"), "a", ("b", "a", "c")),
        PredictedFile(Path("3"), "a", ("b", "c", "d")),
        PredictedFile(Path("4"), "b", ("b", "a")),
        PredictedFile(Path("5"), "b", (), "unreadable"),
        PredictedFile(Path("6"), "c", (), "unreadable"),
    ]
    assert accuracies(answers) == {
        "n": 4,
        "top1": 50.0,
        "top5": 75.0,
        "per_class": {
            "a": {"n": 3, "top1": 33.33, "top5": 66.67},
            "b": {"n": 1, "top1": 100.0, "top5": 100.0},
        },
    }
    assert accuracies([]) == {"n": 0, "top1": 0.0, "top5": 0.0, "per_class": {}}


def test_rejection_rates_are_counted_for_known_and_unknown_classes() -> None:
    def answer(label: str, best: str, score: float) -> PredictedFile:
        return PredictedFile(Path("x.png"), label, (best,), familiarity=score)

    answers = [
        answer("ant", "ant", 0.5),
        answer("ant", "bee", 0.5),
        answer("ant", "bee", 0.4),
        answer("bee", "bee", 0.5),
        answer("cow", "ant", 0.4),
        answer("cow", "bee", 0.5),
        PredictedFile(Path("y.png"), "cow", (), "unreadable"),
    ]
    assert rejection_rates(answers, {"ant", "bee"}, 0.5) == {
        "taught": 4,
        "taught_rejected": 25.0,
        "right_of_answered": 66.67,
        "never_taught": 2,
        "never_taught_rejected": 50.0,
    }
    assert rejection_rates(answers, {"ant", "bee", "cow"}, 0.5)["never_taught_rejected"] is None
