"""Changing one's mind: rename, merge, forget, correct; nothing of what was forgotten is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import BadInput, Busy
from siesta.images import Pixels
from siesta.store.wipe import Wipe
from tests.test_learner import picture

LESSON = [(label, number) for number in range(6) for label in ("red", "green", "blue")]


def teach(learner: Siesta, lesson: list[tuple[str, int]], called: str | None = None) -> list[int]:
    return [learner.learn_one(picture(label, number), called or label) for label, number in lesson]


@pytest.fixture(params=["disk", "ram"])
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Siesta]:
    path = tmp_path / "colours.siesta" if request.param == "disk" else ":memory:"
    with Siesta.create(path, image_size=32) as made:
        teach(made, LESSON)
        yield made


def asked() -> list[Pixels]:
    return [picture(label, 99) for label in ("red", "green", "blue", "grey")]


def answers(learner: Siesta) -> list[dict[str, float]]:
    """Every label with its score, for a few pictures."""
    return [dict(answer.top) for answer in learner.predict_many(asked(), top=9)]


def assert_alike(one: Siesta, other: Siesta) -> None:
    for mine, its in zip(answers(one), answers(other), strict=True):
        assert mine.keys() == its.keys()
        for label, score in mine.items():
            assert score == pytest.approx(its[label], rel=1e-4, abs=1e-6)
    facts = [{entry["label"]: entry["taught"] for entry in some.info()["classes"]} for some in (one, other)]
    assert facts[0] == facts[1]


def fresh(lesson: list[tuple[str, int]]) -> Siesta:
    other = Siesta.create(":memory:", image_size=32)
    teach(other, lesson)
    return other


def holds(path: Path, codes: bytes) -> list[str]:
    return [str(file) for file in path.rglob("*") if file.is_file() and codes in file.read_bytes()]


def test_a_new_name_is_a_new_name_and_no_more(learner: Siesta) -> None:
    before = answers(learner)
    learner.rename("red", "crimson")
    assert answers(learner) == [{"crimson" if k == "red" else k: v for k, v in some.items()} for some in before]
    with pytest.raises(BadInput, match="a class 'blue' already: merge"):
        learner.rename("green", "blue")
    with pytest.raises(BadInput, match="no class 'red'"):
        learner.rename("red", "scarlet")
    with pytest.raises(BadInput):
        learner.rename("green", "")
    assert [entry["what"] for entry in learner.store.changes.audit()] == ["rename"]


def test_merged_awake_it_is_as_if_taught_so(learner: Siesta) -> None:
    learner.merge("red", "blue")
    other = Siesta.create(":memory:", image_size=32)
    for label, number in LESSON:
        other.learn_one(picture(label, number), "blue" if label == "red" else label)
    assert_alike(learner, other)
    assert learner.sleep(updates=24, batch_size=8).classes == 2
    with pytest.raises(BadInput, match="one class already"):
        learner.merge("blue", "blue")
    other.close()


def test_merged_after_a_sleep_the_mean_of_both_stays_in_every_generation(learner: Siesta) -> None:
    learner.sleep(updates=24, batch_size=8)
    learner.sleep(updates=24, batch_size=8)
    teach(learner, [("red", 50)])
    learner.merge("red", "blue")
    for number in (1, 2):
        learner.roll_back(number)
        assert {label for some in answers(learner) for label in some} == {"green", "blue"}
        assert learner.predict_one(picture("red", 99)).label == "blue"
    assert [entry["taught"] for entry in learner.info()["classes"]] == [6, 13]


def test_a_forgotten_class_is_as_if_never_taught(learner: Siesta) -> None:
    path = learner.store.path
    memory = learner.store.memory()
    _, codes = learner.store.get(memory.ids[memory.classes == 1])
    assert path is None or all(holds(path, row.tobytes()) for row in codes)
    learner.forget("red")
    other = fresh([some for some in LESSON if some[0] != "red"])
    assert_alike(learner, other)
    assert path is None or not any(holds(path, row.tobytes()) for row in codes)
    assert len(learner.store) == 12
    teach(learner, [("red", 1)])  # and it may come again
    assert learner.predict_one(picture("red", 1)).label == "red"
    other.close()


def test_a_class_forgotten_after_sleeps_is_in_no_generation(learner: Siesta) -> None:
    learner.sleep(updates=24, batch_size=8)
    learner.sleep(updates=24, batch_size=8)
    teach(learner, [("grey", 1), ("red", 9)])
    learner.forget("red")
    for number in (2, 1, 0, 2):
        learner.roll_back(number)
        assert {label for some in answers(learner) for label in some} == {"green", "blue", "grey"}
    assert learner.sleep(updates=24, batch_size=8).classes == 3


def test_a_forgotten_sample_leaves_means_and_files(learner: Siesta) -> None:
    path = learner.store.path
    _, codes = learner.store.get(np.array([7]))
    learner.forget_sample(7)
    assert_alike(learner, other := fresh([some for place, some in enumerate(LESSON) if place != 6]))
    assert path is None or not holds(path, codes[0].tobytes())
    with pytest.raises(BadInput, match="no sample 7"):
        learner.forget_sample(7)
    for sample_id in (1, 4, 10, 13, 16):
        learner.forget_sample(sample_id)
    assert [entry["label"] for entry in learner.info()["classes"]] == ["green", "blue"]
    other.close()


def test_a_sample_of_before_the_sleep_counts_no_more(learner: Siesta) -> None:
    learner.sleep(updates=24, batch_size=8)
    before = answers(learner)
    learner.forget_sample(1)
    assert answers(learner) == before  # the vector was trained: it stays, and counts one less
    assert learner._head.count(1) == 5
    assert [entry["taught"] for entry in learner.info()["classes"]] == [5, 6, 6]


def test_a_corrected_sample_is_as_if_taught_so(learner: Siesta) -> None:
    (wrong,) = teach(learner, [("grey", 3)], called="red")
    again = learner.correct(wrong, "grey")
    assert again > wrong
    other = fresh([*LESSON, ("grey", 3)])
    assert_alike(learner, other)
    assert learner.store.changes.audit()[-1]["what"] == "correct"
    learner.sleep(updates=24, batch_size=8)
    moved = learner.correct(again, "red")
    assert learner.store.samples.class_of(moved) == 1
    assert [entry["label"] for entry in learner.info()["classes"]] == ["red", "green", "blue"]
    other.close()


def test_asleep_nothing_is_changed(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        teach(learner, LESSON)

        def change(_: Progress) -> None:
            with pytest.raises(Busy, match="asleep, or being changed"):
                learner.forget("red")

        with Siesta.open(tmp_path / "x.siesta", to_sleep=True) as sleeper:
            sleeper.sleep(updates=4, batch_size=4, on_progress=change)
        learner.forget("red")


def test_a_crash_between_commit_and_rename_is_finished_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        teach(learner, LESSON)
        learner.sleep(updates=24, batch_size=8)
        monkeypatch.setattr(learner.store.generations, "finish", lambda: None)
        learner.forget("red")
        with Siesta.open(tmp_path / "x.siesta", read_only=True) as reader:
            assert {label for some in answers(reader) for label in some} == {"green", "blue"}
    with Siesta.open(tmp_path / "x.siesta") as again:
        assert {label for some in answers(again) for label in some} == {"green", "blue"}
    assert not list((tmp_path / "x.siesta").rglob("*.next"))


def test_a_reader_sees_what_was_changed(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        teach(learner, LESSON)
        learner.sleep(updates=24, batch_size=8)
        with Siesta.open(tmp_path / "x.siesta", read_only=True) as reader:
            assert answers(reader) == answers(learner)
            learner.rename("red", "crimson")
            assert answers(reader) == answers(learner)
            learner.forget("blue")
            assert answers(reader) == answers(learner)
            learner.merge("green", "crimson")
            assert answers(reader) == answers(learner)


def test_a_reader_sees_what_was_forgotten_since_the_last_sleep(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        teach(learner, LESSON)
        learner.sleep(updates=24, batch_size=8)
        with Siesta.open(tmp_path / "x.siesta", read_only=True) as reader:
            samples = teach(learner, [("grey", 1), ("grey", 2), ("blue", 7)], called="red")
            teach(learner, [("grey", 3)])
            assert answers(reader) == answers(learner)
            for sample in samples:
                learner.forget_sample(sample)
                assert answers(reader) == answers(learner)
            learner.forget("grey")
            assert answers(reader) == answers(learner)
            learner.correct(teach(learner, [("green", 8)], called="red")[0], "green")
            assert answers(reader) == answers(learner)


def test_a_corrected_sample_keeps_its_key(learner: Siesta) -> None:
    (sample,) = learner.learn_many([picture("grey", 1)], ["red"], [77])
    with pytest.raises(BadInput, match="'red' already"):
        learner.correct(sample, "red")
    new = learner.correct(sample, "grey")
    assert learner.known_keys([77]) == {77: new}


def test_two_classes_that_became_one_hold_no_more_out_than_one(learner: Siesta) -> None:
    for label in ("red", "green"):
        codes = np.repeat(learner.encode([picture(label)]), 40, axis=0)
        learner.learn_encoded(codes, [label] * 40)
    learner.merge("green", "red")
    ids, _ = learner.store.samples.held_out(learner.store.samples.newest())
    assert len(ids) == 5
    assert learner.store._connection.execute("SELECT held FROM classes WHERE label = 'red'").fetchone() == (5,)
    assert learner.sleep(updates=8, batch_size=8, tolerance=1).held_out == 5


def test_what_could_not_be_wiped_is_wiped_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.siesta"

    def full(_: Wipe) -> None:
        raise BadInput("it is forgotten, but its bytes could not be cleared (full)")

    with Siesta.create(path, image_size=32) as learner:
        teach(learner, LESSON)
        _, codes = learner.store.get(np.array([7]))
        with monkeypatch.context() as patch, pytest.raises(BadInput, match="it is forgotten"):
            patch.setattr(Wipe, "keep", full)
            learner.forget_sample(7)
        assert answers(learner) and (path / "to_be_wiped").exists()
    with Siesta.open(path):
        assert not holds(path, codes[0].tobytes()) and not (path / "to_be_wiped").exists()
