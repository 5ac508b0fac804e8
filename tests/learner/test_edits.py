"""Changing one's mind: rename, merge, forget, correct; nothing of what was forgotten is left."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import Applied, BadInput, Busy, DiskRefused
from siesta.images import Pixels
from siesta.learner import state
from siesta.learner.integrity import check
from siesta.sleep.calibration import softmax
from siesta.store import generations, tensor_files
from siesta.store.secure_delete import SecureDelete
from tests.learner.colours import picture
from tests.small import create_small
from tests.stores import store_of

LESSON = [(label, number) for number in range(6) for label in ("red", "green", "blue")]


def teach(learner: Siesta, lesson: list[tuple[str, int]], called: str | None = None) -> list[int]:
    return [learner.learn_one(picture(label, number), called or label) for label, number in lesson]


@pytest.fixture(params=[("disk", "discriminant"), ("ram", "discriminant"), ("disk", "cosine")], ids="-".join)
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Siesta]:
    place, head = request.param
    path = tmp_path / "colours.siesta" if place == "disk" else ":memory:"
    with create_small(path, head=head) as made:
        teach(made, LESSON)
        yield made


def asked() -> list[Pixels]:
    return [picture(label, 99) for label in ("red", "green", "blue", "grey")]


def answers(learner: Siesta) -> list[dict[str, float]]:
    """Every label with its score, for a few pictures."""
    return [dict(answer.top) for answer in learner.predict_many(asked(), top=9)]


def answers_of_all(learner: Siesta) -> list[dict[str, float]]:
    """The same with a covariance that is also that of the samples learned last, which a discriminant adds later."""
    if learner._state.discriminant is None:
        return answers(learner)
    discriminant = learner._state.discriminant.folded()
    scores = softmax(discriminant.logits(learner.pipeline.features(learner.encode(asked()))))
    labels = [learner.label_of(class_id) for class_id in discriminant.class_ids.tolist()]
    return [dict(zip(labels, row, strict=True)) for row in scores.tolist()]


def assert_alike(one: Siesta, other: Siesta) -> None:
    for mine, its in zip(answers_of_all(one), answers_of_all(other), strict=True):
        assert mine.keys() == its.keys()
        for label, score in mine.items():
            assert score == pytest.approx(its[label], rel=1e-4, abs=1e-6)
    facts = [{entry.label: entry.taught for entry in some.info().classes} for some in (one, other)]
    assert facts[0] == facts[1]


def fresh(lesson: list[tuple[str, int]], head: str) -> Siesta:
    other = create_small(head=head)
    teach(other, lesson)
    return other


def holds(path: Path, codes: bytes) -> list[str]:
    return [str(file) for file in path.rglob("*") if file.is_file() and codes in file.read_bytes()]


def test_renaming_changes_only_the_label(learner: Siesta) -> None:
    before = answers(learner)
    learner.rename("red", "crimson")
    assert answers(learner) == [{"crimson" if k == "red" else k: v for k, v in some.items()} for some in before]
    with pytest.raises(BadInput, match="a class 'blue' already: merge"):
        learner.rename("green", "blue")
    with pytest.raises(BadInput, match="no class 'red'"):
        learner.rename("red", "scarlet")
    with pytest.raises(BadInput):
        learner.rename("green", "")
    assert [entry["what"] for entry in learner.info().changes] == ["rename"]


def test_a_merge_before_any_sleep_equals_learning_with_one_label(learner: Siesta) -> None:
    learner.merge("red", "blue")
    other = create_small(head=learner.info().head)
    for label, number in LESSON:
        other.learn_one(picture(label, number), "blue" if label == "red" else label)
    assert_alike(learner, other)
    assert learner.sleep(updates=24, batch_size=8).classes == 2
    with pytest.raises(BadInput, match="cannot be merged with itself"):
        learner.merge("blue", "blue")
    other.close()


def test_a_merge_after_sleeps_changes_every_generation(learner: Siesta) -> None:
    learner.sleep(updates=24, batch_size=8)
    learner.sleep(updates=24, batch_size=8)
    teach(learner, [("red", 50)])
    learner.merge("red", "blue")
    for number in (1, 2):
        learner.roll_back(number)
        assert {label for some in answers(learner) for label in some} == {"green", "blue"}
        assert learner.predict_one(picture("red", 99)).label == "blue"
    assert [entry.taught for entry in learner.info().classes] == [6, 13]


def test_a_forgotten_class_equals_one_never_learned(learner: Siesta) -> None:
    path = store_of(learner).path
    memory = store_of(learner).samples.memory()
    _, codes = store_of(learner).samples.get(memory.ids[memory.classes == 1])
    assert path is None or all(holds(path, row.tobytes()) for row in codes)
    learner.forget("red")
    other = fresh([some for some in LESSON if some[0] != "red"], learner.info().head)
    assert_alike(learner, other)
    assert path is None or not any(holds(path, row.tobytes()) for row in codes)
    assert learner.info().samples.stored == 12
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


def test_a_forgotten_sample_leaves_the_means_and_the_files(learner: Siesta) -> None:
    path = store_of(learner).path
    _, codes = store_of(learner).samples.get(np.array([7]))
    learner.forget_sample(7)
    lesson = [some for place, some in enumerate(LESSON) if place != 6]
    assert_alike(learner, other := fresh(lesson, learner.info().head))
    assert path is None or not holds(path, codes[0].tobytes())
    with pytest.raises(BadInput, match="no sample 7"):
        learner.forget_sample(7)
    for sample_id in (1, 4, 10, 13, 16):
        learner.forget_sample(sample_id)
    assert [entry.label for entry in learner.info().classes] == ["green", "blue"]
    other.close()


def test_a_forgotten_sample_of_before_the_sleep_is_not_counted_any_more(learner: Siesta) -> None:
    learner.sleep(updates=24, batch_size=8)
    before = answers(learner)
    learner.forget_sample(1)
    if learner.info().head == "cosine":
        assert answers(learner) == before  # the vector was trained: it stays, and counts one less
    assert learner.head.count(1) == 5
    assert [entry.taught for entry in learner.info().classes] == [5, 6, 6]


def test_a_corrected_sample_equals_one_learned_with_that_label(learner: Siesta) -> None:
    (wrong,) = teach(learner, [("grey", 3)], called="red")
    again = learner.correct(wrong, "grey")
    assert again > wrong
    other = fresh([*LESSON, ("grey", 3)], learner.info().head)
    assert_alike(learner, other)
    assert learner.info().changes[-1]["what"] == "correct"
    learner.sleep(updates=24, batch_size=8)
    moved = learner.correct(again, "red")
    assert store_of(learner).samples.class_of(moved) == 1
    assert [entry.label for entry in learner.info().classes] == ["red", "green", "blue"]
    other.close()


def test_edits_are_refused_during_a_sleep(tmp_path: Path) -> None:
    with create_small(tmp_path / "x.siesta") as learner:
        teach(learner, LESSON)

        def change(_: Progress) -> None:
            with pytest.raises(Busy, match="asleep, or being changed"):
                learner.forget("red")

        with Siesta.open(tmp_path / "x.siesta", to_sleep=True) as sleeper:
            sleeper.sleep(updates=4, batch_size=4, on_progress=change)
        learner.forget("red")


def test_an_edit_interrupted_after_its_commit_is_completed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_small(tmp_path / "x.siesta") as learner:
        teach(learner, LESSON)
        learner.sleep(updates=24, batch_size=8)
        monkeypatch.setattr(store_of(learner).generations, "finish", lambda: None)
        learner.forget("red")
        with Siesta.open(tmp_path / "x.siesta", read_only=True) as reader:
            assert {label for some in answers(reader) for label in some} == {"green", "blue"}
    with Siesta.open(tmp_path / "x.siesta") as again:
        assert {label for some in answers(again) for label in some} == {"green", "blue"}
    assert not list((tmp_path / "x.siesta").rglob("*.next"))


def test_a_reader_sees_edits(tmp_path: Path) -> None:
    with create_small(tmp_path / "x.siesta") as learner:
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


def test_a_reader_sees_removals_since_the_last_sleep(tmp_path: Path) -> None:
    with create_small(tmp_path / "x.siesta") as learner:
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


def test_a_merged_class_holds_out_no_more_samples_than_one(learner: Siesta) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (80, learner.encode([picture("red")]).shape[1]), np.uint8)
    learner.learn_encoded(codes, ["red", "green"] * 40)
    learner.merge("green", "red")
    ids, _ = store_of(learner).samples.held_out(store_of(learner).samples.newest())
    assert len(ids) == 5
    assert store_of(learner).session.connection.execute("SELECT held FROM classes WHERE label = 'red'").fetchone() == (
        5,
    )
    assert learner.sleep(updates=8, batch_size=8, tolerance=1).held_out == 5


@pytest.mark.parametrize(
    ("edit", "arguments"), [("merge", ("green", "red")), ("forget", ("red",)), ("correct", (7, "grey"))]
)
def test_an_edit_whose_files_the_disk_refuses_to_rename_says_that_it_was_applied(
    edit: str, arguments: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.siesta"

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with create_small(path) as learner, create_small() as other:
        for each in (learner, other):
            teach(each, LESSON)
            each.sleep(updates=2, batch_size=4, seed=1)
        expected = getattr(other, edit)(*arguments)
        with (
            monkeypatch.context() as patch,
            pytest.raises(Applied, match=r"the change was applied.*do not repeat") as failed,
        ):
            patch.setattr(tensor_files, "sync_folder", refuse)
            getattr(learner, edit)(*arguments)
        assert failed.value.sample == expected
        assert edit != "correct" or f"new id {expected})" in str(failed.value)
        assert_alike(learner, other)
        kept = answers(learner)
    with Siesta.open(path) as learner:
        assert answers(learner) == kept
        assert not list(path.rglob("*.next"))
        assert check(path, full=True) == []


def test_a_second_edit_keeps_what_the_first_could_not_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.siesta"

    def refuse(folder: Path, _: object) -> None:
        if list(folder.glob("*.next")):
            raise OSError(errno.EIO, "Input/output error")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with create_small(path) as learner:
        teach(learner, LESSON)
        learner.sleep(updates=2, batch_size=4)
        with monkeypatch.context() as patch, pytest.raises(Applied):
            patch.setattr(generations, "finish_next", refuse)
            learner.merge("green", "red")
        before = answers(learner)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(generations.Generations, "record_hashes", dies)
            learner.forget("red")
        assert answers(learner) == before
    assert check(path, full=True) == []


def test_an_edit_whose_result_cannot_be_loaded_at_once_is_loaded_later(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DiskRefused("refused")

    with monkeypatch.context() as patch:
        patch.setattr(state.LearnerState, "_use", refuse)
        new = learner.correct(7, "grey")
        with pytest.raises(DiskRefused):
            learner.predict_one(picture("red"))
    assert "grey" in dict(learner.predict_one(picture("red"), top=9).top)
    assert store_of(learner).samples.newest() == new


def test_a_full_disk_after_an_edit_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: SecureDelete) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with create_small(tmp_path / "x.siesta") as learner:
        teach(learner, LESSON)
        monkeypatch.setattr(SecureDelete, "finish", refuse)
        monkeypatch.setattr("siesta.store.session.is_full", lambda _: True)
        with pytest.raises(Applied, match=r"clear the old bytes .No space left on device"):
            learner.forget("red")


def test_an_unfinished_secure_delete_is_completed_on_the_next_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.siesta"

    def full(_: SecureDelete) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with create_small(path) as learner:
        teach(learner, LESSON)
        _, codes = store_of(learner).samples.get(np.array([7]))
        with (
            monkeypatch.context() as patch,
            pytest.raises(Applied, match=r"the change was applied.*clear the old bytes .database or disk is full"),
        ):
            patch.setattr(SecureDelete, "finish", full)
            learner.forget_sample(7)
        assert answers(learner) and (path / "to_be_wiped").exists()
    with Siesta.open(path):
        assert not holds(path, codes[0].tobytes()) and not (path / "to_be_wiped").exists()
