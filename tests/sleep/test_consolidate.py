"""Consolidation while other processes learn and predict, held-out samples, and generations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import BadInput, Busy
from siesta.head import Head
from tests.learner.colours import picture
from tests.stores import store_of

COLOURS = ["red", "green", "blue"]


@pytest.fixture
def teacher(tmp_path: Path) -> Iterator[Siesta]:
    with Siesta.create(tmp_path / "colours.siesta", image_size=32, memory="40 samples") as learner:
        for number in range(12):
            learner.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])
        yield learner


def path_of(learner: Siesta) -> Path:
    path = store_of(learner).path
    assert path is not None
    return path


def embedded(learner: Siesta, ids: list[int]) -> np.ndarray:
    _, codes = store_of(learner).samples.get(np.array(ids, dtype=np.int64))
    return learner.pipeline.features(codes).astype(np.float64)


def test_samples_learned_during_a_sleep_are_counted_under_the_new_top(teacher: Siesta) -> None:
    taught: dict[str, list[int]] = {"red": [], "grey": []}
    reader = Siesta.open(path_of(teacher), read_only=True)

    def teach(progress: Progress) -> None:
        if progress.updates in (4, 8):
            for label, ids in taught.items():
                ids.append(teacher.learn_one(picture(label, 100 + progress.updates), label))
            assert teacher.active_generation() == 0
            assert reader.predict_one(picture("grey", 104)).label == "grey"  # readers see it at once

    with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:
        report = sleeper.sleep(updates=16, batch_size=4, lr=0.05, on_progress=teach)
        head = Head.from_state(store_of(sleeper).snapshot().weights["head"])
        with pytest.raises(BadInput, match="opened with to_sleep=True"):
            sleeper.learn_one(picture("red"), "red")
    assert (report.generation, report.classes, report.updates) == (1, 3, 16)
    assert len(taught["red"]) == 2
    teacher.predict_one(picture("red"))  # takes the new weights over
    for label, ids in taught.items():
        (recent,) = store_of(teacher).classes.recent(
            [next(some.id for some in teacher.classes() if some.label == label)]
        )
        assert recent.count == 2
        np.testing.assert_allclose(recent.total, embedded(teacher, ids).sum(axis=0), rtol=1e-5)
        count, vector = head.at_last_sleep(recent.class_id)
        assert count == (4 if label == "red" else 0)
        mean = (count * vector + recent.total) / (count + 2)
        row = teacher.head.class_ids.tolist().index(recent.class_id)
        np.testing.assert_allclose(teacher.head.weights()[row], mean, rtol=1e-5, atol=1e-6)
    with Siesta.open(path_of(teacher), read_only=True) as fresh:
        for asked in ("grey", "blue"):
            answers = [some.predict_one(picture(asked, 7)) for some in (teacher, reader, fresh)]
            assert answers[0] == answers[1] == answers[2]


def test_a_sample_learned_during_the_swap_is_embedded_again_with_the_new_top(teacher: Siesta) -> None:
    """The other process swaps between the features and the commit of a sample."""
    features, sleeper = teacher.pipeline.features, Siesta.open(path_of(teacher), to_sleep=True)
    calls: list[int] = []

    def swapped_just_after(codes: np.ndarray) -> np.ndarray:
        found = features(codes)
        if not calls:
            sleeper.sleep(updates=8, batch_size=4, lr=0.05)
        calls.append(len(codes))
        return found

    teacher.pipeline.features = swapped_just_after  # type: ignore[method-assign]
    number = teacher.learn_one(picture("grey", 5), "grey")
    assert calls == [1, 1]
    (recent,) = store_of(teacher).classes.recent([4])
    np.testing.assert_allclose(recent.total, embedded(sleeper, [number])[0], rtol=1e-5)
    sleeper.close()


def test_evicted_samples_count_and_move_nothing(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "small.siesta", image_size=32, memory="6 samples") as teacher:
        for number in range(6):
            teacher.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])

        def teach(_: Progress) -> None:
            teacher.learn_one(picture("red", 50 + teacher.info().classes[0].taught), "red")

        with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:
            sleeper.sleep(updates=32, batch_size=4, lr=0.01, on_progress=teach)
            head = Head.from_state(store_of(sleeper).snapshot().weights["head"])
        (recent,) = store_of(teacher).classes.recent([1])
        kept = store_of(teacher).samples.memory().ids
        ids = [int(some) for some in kept if some > 6]
        assert recent.count == 8 > len(ids)
        count, vector = head.at_last_sleep(1)
        teacher.predict_one(picture("red"))
        mean = (count * vector + embedded(teacher, ids).sum(axis=0)) / (count + len(ids))
        assert np.allclose(teacher.head.weights()[0], mean, rtol=1e-5, atol=1e-6)


def test_two_sleeps_at_once_are_refused(teacher: Siesta) -> None:
    with Siesta.open(path_of(teacher), to_sleep=True) as sleeper:

        def sleep_too(_: Progress) -> None:
            with pytest.raises(Busy, match="asleep already, in process"):
                teacher.sleep(updates=4)

        assert sleeper.sleep(updates=4, batch_size=4, on_progress=sleep_too).generation == 1
    assert teacher.sleep(updates=4, batch_size=4).generation == 2


def test_opening_the_learner_during_the_swap_does_not_remove_the_new_generation(teacher: Siesta) -> None:
    path = path_of(teacher)
    teacher.close()
    with Siesta.open(path, to_sleep=True) as sleeper:
        real = store_of(sleeper).generations.add

        def opened_in_between(*arguments: object) -> int:
            number = real(*arguments)  # type: ignore[arg-type]
            Siesta.open(path).close()  # tidies up
            return number

        store_of(sleeper).generations.add = opened_in_between  # type: ignore[method-assign, assignment]
        sleeper.sleep(updates=4, batch_size=4)
    with Siesta.open(path) as again:
        assert again.active_generation() == 1


# -- held-out samples and generations ----------------------------------------------------------------------------------


@pytest.fixture
def experienced(tmp_path: Path) -> Iterator[Siesta]:
    """Return a learner with forty samples each of two colours."""
    with Siesta.create(tmp_path / "two.siesta", image_size=32) as learner:
        images = [picture(label, number) for number in range(40) for label in ("red", "green")]
        learner.learn_many(images, ["red", "green"] * 40)
        yield learner


def test_five_of_a_class_are_held_out_and_never_rehearsed(experienced: Siesta) -> None:
    store = store_of(experienced)
    ids, classes = store.samples.held_out(80)
    assert np.bincount(classes).tolist() == [0, 5, 5]
    assert ids.tolist() == [2 * number - side for number in (20, 24, 28, 32, 36) for side in (1, 0)]
    assert not set(ids.tolist()) & set(store.samples.memory().ids.tolist())
    report = experienced.sleep(updates=140, batch_size=10)
    assert (report.held_out, report.used) == (10, True)
    assert report.samples == 70
    assert report.accuracy_after == 1.0
    assert store.samples.memory().rehearsed.sum() == 140, "all rehearsals were of other samples"


def test_without_held_out_samples_every_generation_is_used(tmp_path: Path) -> None:
    with Siesta.create(":memory:", image_size=32, hold_out=False) as learner:
        learner.learn_many([picture("red", number) for number in range(40)], ["red"] * 40)
        report = learner.sleep(updates=8, batch_size=4)
        assert (report.held_out, report.accuracy_before, report.accuracy_after, report.used) == (0, None, None, True)


def test_a_generation_that_is_worse_is_kept_but_not_used(experienced: Siesta) -> None:
    before = experienced.predict_one(picture("red", 77))
    report = experienced.sleep(
        updates=40, batch_size=10, tolerance=-0.5
    )  # only an accuracy that rises by half is tolerated
    assert not report.used
    assert experienced.active_generation() == 0
    assert experienced.predict_one(picture("red", 77)) == before
    assert [(some.number, some.in_use) for some in experienced.generations()] == [(0, True), (1, False)]
    assert experienced.sleep(updates=4, batch_size=4).generation == 2
    assert experienced.active_generation() == 2
    for wrong in (float("nan"), 2, -2):
        with pytest.raises(BadInput, match=r"tolerance must be in -1\.\.1"):
            experienced.sleep(updates=4, batch_size=4, tolerance=wrong)


def test_an_older_generation_predicts_as_before_and_knows_samples_learned_since(experienced: Siesta) -> None:
    asked = [picture(label, 90) for label in ("red", "green", "blue")]
    experienced.sleep(updates=40, batch_size=10, lr=0.05)
    first = experienced.predict_many(asked)
    experienced.sleep(updates=40, batch_size=10, lr=0.05)
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
        assert one.score == pytest.approx(other.score, abs=0.05)  # the covariance is now that of the new samples, too


def test_evicted_held_out_samples_make_room_for_others(tmp_path: Path) -> None:
    with Siesta.create(":memory:", image_size=32, memory="20 samples") as learner:
        learner.learn_many([picture("red", number) for number in range(80)], ["red"] * 80)
        ids, _ = store_of(learner).samples.held_out(80)
        assert 0 < len(ids) <= 5
        assert max(ids) > 20, "others than the first five"
