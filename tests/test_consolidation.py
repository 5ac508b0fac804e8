"""Sleep in one process while another one teaches and a third one asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta import Siesta
from siesta.confidence import Confidence
from siesta.consolidation import _worse
from siesta.contracts import Codes, Progress
from siesta.errors import BadInput, Busy
from siesta.head import Head
from tests.test_learner import picture

COLOURS = ["red", "green", "blue"]


@pytest.fixture
def teacher(tmp_path: Path) -> Iterator[Siesta]:
    with Siesta.create(tmp_path / "colours.siesta", image_size=32, memory="40 samples") as learner:
        for number in range(12):
            learner.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])
        yield learner


def path_of(learner: Siesta) -> Path:
    path = learner.store.path
    assert path is not None
    return path


def embedded(learner: Siesta, ids: list[int]) -> np.ndarray:
    _, codes = learner.store.get(np.array(ids, dtype=np.int64))
    return learner.pipeline.features(codes).astype(np.float64)


def test_what_is_taught_meanwhile_is_counted_in_with_the_new_top(teacher: Siesta) -> None:
    taught: dict[str, list[int]] = {"red": [], "grey": []}
    reader = Siesta.open(path_of(teacher), read_only=True)

    def teach(progress: Progress) -> None:
        if progress.updates in (4, 8):
            for label, ids in taught.items():
                ids.append(teacher.learn_one(picture(label, 100 + progress.updates), label))
            assert teacher.store.generation() == 0
            assert reader.predict_one(picture("grey", 104)).label == "grey"  # readers see it at once

    with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:
        report = sleeper.sleep(updates=16, batch_size=4, rate=0.05, on_progress=teach)
        head = Head.from_state(sleeper.store.snapshot().weights["head"])
        with pytest.raises(BadInput, match="opened to sleep on"):
            sleeper.learn_one(picture("red"), "red")
    assert (report.generation, report.classes, report.updates) == (1, 3, 16)
    assert len(taught["red"]) == 2
    teacher.predict_one(picture("red"))  # takes the new weights over
    for label, ids in taught.items():
        (recent,) = teacher.store.recent([next(some.id for some in teacher.store.classes() if some.label == label)])
        assert recent.count == 2
        np.testing.assert_allclose(recent.total, embedded(teacher, ids).sum(axis=0), rtol=1e-5)
        count, vector = head.known(recent.class_id)
        assert count == (4 if label == "red" else 0)
        mean = (count * vector + recent.total) / (count + 2)
        row = teacher._head.class_ids.tolist().index(recent.class_id)
        np.testing.assert_allclose(teacher._head.weights()[row].numpy(), mean, rtol=1e-5, atol=1e-6)
    with Siesta.open(path_of(teacher), read_only=True) as fresh:
        for asked in ("grey", "blue"):
            answers = [some.predict_one(picture(asked, 7)) for some in (teacher, reader, fresh)]
            assert answers[0] == answers[1] == answers[2]


def test_a_sample_that_meets_the_swap_is_learned_with_the_new_top(teacher: Siesta) -> None:
    """The other process swaps between the features and the commit of a sample."""
    features, sleeper = teacher.pipeline.features, Siesta.open(path_of(teacher), to_sleep=True)
    calls: list[int] = []

    def swapped_just_after(codes: np.ndarray) -> np.ndarray:
        found = features(codes)
        if not calls:
            sleeper.sleep(updates=8, batch_size=4, rate=0.05)
        calls.append(len(codes))
        return found

    teacher.pipeline.features = swapped_just_after  # type: ignore[method-assign]
    number = teacher.learn_one(picture("grey", 5), "grey")
    assert calls == [1, 1]
    (recent,) = teacher.store.recent([4])
    np.testing.assert_allclose(recent.total, embedded(sleeper, [number])[0], rtol=1e-5)
    sleeper.close()


def test_evicted_samples_count_and_move_nothing(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "small.siesta", image_size=32, memory="6 samples") as teacher:
        for number in range(6):
            teacher.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])

        def teach(_: Progress) -> None:
            teacher.learn_one(picture("red", 50 + teacher.info()["classes"][0]["taught"]), "red")

        with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:
            sleeper.sleep(updates=32, batch_size=4, rate=0.01, on_progress=teach)
            head = Head.from_state(sleeper.store.snapshot().weights["head"])
        (recent,) = teacher.store.recent([1])
        kept = teacher.store.memory().ids
        ids = [int(some) for some in kept if some > 6]
        assert recent.count == 8 > len(ids)
        count, vector = head.known(1)
        teacher.predict_one(picture("red"))
        mean = (count * vector + embedded(teacher, ids).sum(axis=0)) / (count + len(ids))
        assert torch.allclose(teacher._head.weights()[0].double(), torch.from_numpy(mean), rtol=1e-5, atol=1e-6)


def test_two_sleeps_at_once_are_refused(teacher: Siesta) -> None:
    with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:

        def sleep_too(_: Progress) -> None:
            with pytest.raises(Busy, match="asleep already, in process"):
                teacher.sleep(updates=4)

        assert sleeper.sleep(updates=4, batch_size=4, on_progress=sleep_too).generation == 1
    assert teacher.sleep(updates=4, batch_size=4).generation == 2


def test_a_teacher_that_opens_meanwhile_lets_the_sleep_be(teacher: Siesta) -> None:
    path = path_of(teacher)
    teacher.close()
    with Siesta.open(path, to_sleep=True) as sleeper:
        real = sleeper.store.generations.add

        def opened_in_between(*arguments: object) -> int:
            number = real(*arguments)  # type: ignore[arg-type]
            Siesta.open(path).close()  # tidies up
            return number

        sleeper.store.generations.add = opened_in_between  # type: ignore[method-assign, assignment]
        sleeper.sleep(updates=4, batch_size=4)
    with Siesta.open(path) as again:
        assert again.store.generation() == 1


# -- samples that are never rehearsed, and generations -----------------------------------------------------------------


@pytest.fixture
def experienced(tmp_path: Path) -> Iterator[Siesta]:
    """Forty samples each of two colours."""
    with Siesta.create(tmp_path / "two.siesta", image_size=32) as learner:
        images = [picture(label, number) for number in range(40) for label in ("red", "green")]
        learner.learn_many(images, ["red", "green"] * 40)
        yield learner


def test_five_of_a_class_are_held_out_and_never_rehearsed(experienced: Siesta) -> None:
    store = experienced.store
    ids, classes = store.samples.held_out(80)
    assert np.bincount(classes).tolist() == [0, 5, 5]
    assert ids.tolist() == [2 * number - side for number in (20, 24, 28, 32, 36) for side in (1, 0)]
    assert not set(ids.tolist()) & set(store.memory().ids.tolist())
    report = experienced.sleep(updates=140, batch_size=10)
    assert (report.held_out, report.used) == (10, True)
    assert report.samples == 70
    assert report.accuracy_after == 1.0
    rehearsed = store._connection.execute("SELECT sum(rehearsed) FROM samples WHERE held").fetchone()
    assert rehearsed == (0,)


def test_learners_that_hold_nothing_out_have_no_guard(tmp_path: Path) -> None:
    with Siesta.create(":memory:", image_size=32, hold_out=False) as learner:
        learner.learn_many([picture("red", number) for number in range(40)], ["red"] * 40)
        report = learner.sleep(updates=8, batch_size=4)
        assert (report.held_out, report.accuracy_before, report.accuracy_after, report.used) == (0, None, None, True)


def test_a_sleep_that_does_worse_is_kept_and_not_used(experienced: Siesta) -> None:
    before = experienced.predict_one(picture("red", 77))
    report = experienced.sleep(updates=40, batch_size=10, tolerance=-0.5)  # not better by half: too bad
    assert not report.used
    assert experienced.store.generation() == 0
    assert experienced.predict_one(picture("red", 77)) == before
    assert [(some.number, some.in_use) for some in experienced.generations()] == [(0, True), (1, False)]
    assert experienced.sleep(updates=4, batch_size=4).generation == 2
    assert experienced.store.generation() == 2
    for wrong in (float("nan"), 2, -2):
        with pytest.raises(BadInput, match="a tolerance lies from -1 to 1"):
            experienced.sleep(updates=4, batch_size=4, tolerance=wrong)


@pytest.mark.parametrize(
    ("before", "after", "worse"), [((8, 4), (3, 9), True), ((6, 0), (5, 1), False), ((400, 100), (350, 150), True)]
)
def test_worse_is_more_than_chance(before: tuple[int, int], after: tuple[int, int], worse: bool) -> None:
    old, new = (Confidence(1.0, (0.9,) * right, (0.5,) * wrong) for right, wrong in (before, after))
    assert _worse(old, new, tolerance=0.05) == worse
    assert not _worse(old, new, tolerance=1.0)


def test_an_older_generation_answers_as_it_did_with_what_was_taught_since_counted_in(experienced: Siesta) -> None:
    asked = [picture(label, 90) for label in ("red", "green", "blue")]
    experienced.sleep(updates=40, batch_size=10, rate=0.05)
    first = experienced.predict_many(asked)
    experienced.sleep(updates=40, batch_size=10, rate=0.05)
    assert experienced.predict_many(asked) != first
    experienced.roll_back(1)
    assert experienced.predict_many(asked) == first
    with pytest.raises(BadInput, match="no generation 7"):
        experienced.roll_back(7)
    experienced.learn_many([picture("blue", number) for number in range(3)], ["blue"] * 3)
    known = experienced.predict_many(asked)
    experienced.roll_back(2)
    assert experienced.predict_many(asked)[2].label == "blue"
    experienced.roll_back(1)
    for one, other in zip(experienced.predict_many(asked), known, strict=True):
        assert one.label == other.label
        assert one.score == pytest.approx(other.score, rel=1e-5)


def test_evicted_held_out_samples_make_room_for_others(tmp_path: Path) -> None:
    with Siesta.create(":memory:", image_size=32, memory="20 samples") as learner:
        learner.learn_many([picture("red", number) for number in range(80)], ["red"] * 80)
        held = learner.store._connection.execute("SELECT count(*) FROM samples WHERE held").fetchone()
        assert held == learner.store._connection.execute("SELECT held FROM classes").fetchone()
        assert 0 < held[0] <= 5


def test_asking_held_out_samples_takes_a_small_part_of_a_time_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    with Siesta.create(":memory:", image_size=32) as learner:
        codes = np.repeat(learner.encode([picture("red"), picture("green")]), 160, axis=0)
        learner.learn_encoded(codes, [f"class {number // 40}" for number in range(320)])
        assert learner.sleep(updates=4, batch_size=4, tolerance=1).held_out == 40, "all five of eight classes"
        features = learner.pipeline.features

        def slow(some: Codes) -> npt.NDArray[np.float32]:
            time.sleep(0.2)
            return features(some)

        monkeypatch.setattr(learner.pipeline, "features", slow)
        assert learner.sleep(seconds=1, batch_size=4, tolerance=1).held_out == 32, "and no more than the first few"
        monkeypatch.setattr("siesta.consolidation._MOST_JUDGES", 10)
        assert learner.sleep(updates=4, batch_size=4, tolerance=1).held_out == 10
