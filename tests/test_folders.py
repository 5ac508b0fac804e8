"""Teaching and asking by folders: nothing twice, nothing lost, what cannot be read is listed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.folders import Answer, ask, checked_files, rejections, score, teach
from siesta.learner import Siesta

MakePictures = Any


@pytest.fixture
def learner() -> Iterator[Siesta]:
    with Siesta.create(":memory:", memory="1MB", image_size=32) as made:
        yield made


def statuses(learner: Siesta, folder: Path) -> Counter[str]:
    return Counter(outcome.status for outcome in teach(learner, checked_files(folder)))


def taught(learner: Siesta) -> dict[str, int]:
    return {entry["label"]: entry["taught"] for entry in learner.info()["classes"]}


def test_each_file_is_taught_once_however_often_it_is_shown(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    assert statuses(learner, folder) == {"learned": 40}
    assert statuses(learner, folder) == {"known": 40}
    assert taught(learner) == {"a": 20, "b": 20}


@pytest.mark.parametrize("seen", [1, 31, 32, 33, 40])
def test_stopped_anywhere_it_goes_on_and_teaches_nothing_twice(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures, seen: int
) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    outcomes = teach(learner, checked_files(folder))
    learned = [next(outcomes) for _ in range(seen)]
    assert sum(taught(learner).values()) >= len(learned)  # an outcome comes when it is stored
    del outcomes
    again = statuses(learner, folder)
    assert again["known"] >= seen
    assert again["known"] + again["learned"] == 40
    assert taught(learner) == {"a": 20, "b": 20}


def test_stopped_and_not_stopped_know_the_same(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=20)
    probe = folder / "a" / "0.png"
    answers = []
    for stop in (True, False):
        with Siesta.create(":memory:", memory=64 * 10, image_size=32) as learner:
            if stop:
                next(teach(learner, checked_files(folder)))
            statuses(learner, folder)
            answers.append((learner.predict_one(probe), learner.info()["classes"]))
    assert answers[0] == answers[1]


def test_what_was_evicted_is_still_known(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=10)
    with Siesta.create(":memory:", memory=64 * 4, image_size=32) as learner:
        assert statuses(learner, folder) == {"learned": 20}
        assert learner.info()["samples"] == {"stored": 4, "capacity": 4}
        assert statuses(learner, folder) == {"known": 20}


def test_the_same_picture_under_another_name_or_label_is_taught(
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


def test_unreadable_files_are_named_and_skipped(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=2)
    (folder / "a" / "1b.txt").write_text("no picture")
    (folder / "b" / "empty.png").write_bytes(b"")
    outcomes = list(teach(learner, checked_files(folder)))
    assert [outcome.status for outcome in outcomes] == ["learned", "learned", "unreadable"] * 2
    for outcome in outcomes:
        assert (outcome.path.name in outcome.reason) == (outcome.status == "unreadable")
    assert statuses(learner, folder) == {"known": 4, "unreadable": 2}
    shutil.copy(folder / "a" / "0.png", folder / "b" / "empty.png")
    assert statuses(learner, folder) == {"known": 4, "unreadable": 1, "learned": 1}


def test_files_that_go_away_or_fail_to_be_read_are_skipped_too(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a"], each=3)
    (folder / "a" / "bad sector.png").symlink_to("/proc/self/mem")  # a file whose bytes the system refuses
    files = checked_files(folder)
    assert len(files) == 4
    (folder / "a" / "1.png").unlink()
    found = {outcome.path.name: outcome.status for outcome in teach(learner, files)}
    assert found == {"0.png": "learned", "1.png": "unreadable", "2.png": "learned", "bad sector.png": "unreadable"}
    answers = list(ask(learner, files))
    assert [bool(answer.reason) for answer in answers] == [bool(not answer.top) for answer in answers]
    assert sum(bool(answer.top) for answer in answers) == 2


def test_labels_are_checked_before_anything_is_taught(tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "new\nline"], each=1)
    with pytest.raises(BadInput, match="control"):
        checked_files(folder)


def test_asking_gives_the_right_label_in_one_spelling(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", [" Cafe\u0301", "b", "c", "d", "e", "f"], each=6)
    statuses(learner, folder)
    (folder / "b" / "broken.png").write_bytes(b"x")
    answers = list(ask(learner, checked_files(folder)))
    assert [answer.path for answer in answers] == [path for path, _ in checked_files(folder)]
    assert all(len(answer.top) == 5 for answer in answers if not answer.reason)
    result = score(answers)
    assert result["n"] == 36
    assert result["per_class"].keys() == {"Caf\u00e9", "b", "c", "d", "e", "f"}
    assert result["top1"] > 80


def test_asking_changes_nothing(learner: Siesta, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "f", ["a", "b"], each=2)
    statuses(learner, folder)
    before = learner.info()
    assert list(ask(learner, checked_files(folder))) == list(ask(learner, checked_files(folder)))
    assert learner.info() == before


def test_asking_a_learner_that_knows_nothing_is_refused(
    learner: Siesta, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "f", ["a"], each=1)
    with pytest.raises(BadInput, match="not taught anything"):
        list(ask(learner, checked_files(folder)))


def test_scores_are_percent_over_what_could_be_read() -> None:
    answers = [
        Answer(Path("1"), "a", ("a", "b", "c")),
        Answer(Path("2"), "a", ("b", "a", "c")),
        Answer(Path("3"), "a", ("b", "c", "d")),
        Answer(Path("4"), "b", ("b", "a")),
        Answer(Path("5"), "b", (), "unreadable"),
        Answer(Path("6"), "c", (), "unreadable"),
    ]
    assert score(answers) == {
        "n": 4,
        "top1": 50.0,
        "top5": 75.0,
        "per_class": {
            "a": {"n": 3, "top1": 33.33, "top5": 66.67},
            "b": {"n": 1, "top1": 100.0, "top5": 100.0},
        },
    }
    assert score([]) == {"n": 0, "top1": 0.0, "top5": 0.0, "per_class": {}}


def test_what_a_threshold_rejects_is_counted() -> None:
    def answer(label: str, best: str, score: float) -> Answer:
        return Answer(Path("x.png"), label, (best,), score=score)

    answers = [
        answer("ant", "ant", 0.5),
        answer("ant", "bee", 0.5),
        answer("ant", "bee", 0.4),
        answer("bee", "bee", 0.5),
        answer("cow", "ant", 0.4),
        answer("cow", "bee", 0.5),
        Answer(Path("y.png"), "cow", (), "unreadable"),
    ]
    assert rejections(answers, {"ant", "bee"}, 0.5) == {
        "taught": 4,
        "taught_rejected": 25.0,
        "right_of_answered": 66.67,
        "never_taught": 2,
        "never_taught_rejected": 50.0,
    }
    assert rejections(answers, {"ant", "bee", "cow"}, 0.5)["never_taught_rejected"] is None
