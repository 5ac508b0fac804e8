"""The statistics of a discriminant head: exactly those of the samples they count, whatever happened to the learner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siesta import Siesta
from siesta.errors import BadInput, Damaged, DiskRefused
from siesta.head import FeatureStatistics
from siesta.learner import state
from siesta.learner.integrity import check, repair
from siesta.learner.sums import wrong_statistics
from siesta.store.schema import Transaction
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of

NAMES = list(COLOURS)


def make(path: Path | str = ":memory:", memory: str = "200 samples") -> Siesta:
    return create_small(path, memory=memory, head="discriminant")


def statistics_of(learner: Siesta) -> FeatureStatistics:
    """Return the statistics as they are stored, with the samples counted since."""
    stored = store_of(learner).statistics.read()
    assert stored.arrays is not None
    width = learner.pipeline.spec.features
    found = FeatureStatistics.from_arrays(stored.arrays) if len(stored.arrays["counts"]) else None
    found = found or FeatureStatistics.empty(width)
    if len(stored.since.ids):
        found.add(stored.since.classes, stored.since.features)
    return found


def recomputed(learner: Siesta) -> FeatureStatistics:
    """Return the statistics of the stored samples that are counted, from their codes."""
    samples = store_of(learner).samples
    found = FeatureStatistics.empty(learner.pipeline.spec.features)
    ids = samples.counted()
    if len(ids):
        found.add(samples.classes_of(ids), learner.pipeline.features(samples.get(ids)[1]))
    return found


def assert_exact(learner: Siesta) -> None:
    actual, expected = statistics_of(learner), recomputed(learner)
    assert actual.class_ids.tolist() == expected.class_ids.tolist()
    assert actual.counts.tolist() == expected.counts.tolist()
    scale = max(float(np.abs(expected.gram).max()), 1e-9)
    np.testing.assert_allclose(actual.gram, expected.gram, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(actual.sums(), expected.sums(), rtol=1e-5, atol=1e-5 * scale)


CHANGES = ["learn", "batch", "forget sample", "forget", "correct", "merge", "sleep", "roll back"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(CHANGES),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=7,
)


@given(STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_they_equal_a_recomputation_after_any_sequence_of_changes(steps: list[tuple[str, int]]) -> None:
    with make() as learner:
        learner.learn_many(*labelled_pictures(12))
        for step, number in steps:
            try:
                _change(learner, step, number)
            except BadInput:  # there is no such sample or class any more
                continue
        assert_exact(learner)


def _change(learner: Siesta, step: str, number: int) -> None:
    label = NAMES[number % 4]
    if step == "learn":
        learner.learn_one(picture(label, number), label)
    elif step == "batch":
        learner.learn_many([picture(label, number + one) for one in range(40)], [label] * 40)
    elif step == "forget sample":
        learner.forget_sample(number % 40)
    elif step == "forget":
        learner.forget(label)
    elif step == "correct":
        learner.correct(number % 40, label)
    elif step == "merge":
        learner.merge(label, NAMES[number // 4 % 4])
    elif step == "sleep":
        learner.sleep(updates=4, batch_size=4, tolerance=1)
    else:
        learner.roll_back(0)


def test_what_was_learned_is_predicted_at_once_and_after_a_sleep() -> None:
    with make() as learner:
        learner.learn_many(*labelled_pictures(10))
        asked = [picture(label, 500) for label in NAMES[:3]]
        assert [answer.label for answer in learner.predict_many(asked)] == NAMES[:3]
        assert sum(score for _, score in learner.predict_one(asked[0], top=9).top) == pytest.approx(1, abs=1e-4)
        learner.sleep(updates=32, batch_size=8)
        assert [answer.label for answer in learner.predict_many(asked)] == NAMES[:3]
        assert learner.info().head == "discriminant"
        assert learner.info().bytes.statistics > 0
        assert_exact(learner)


def test_batches_of_any_size_give_the_same_predictions() -> None:
    pictures, labels = labelled_pictures(40)
    asked = [picture(label, 500) for label in NAMES]
    answers = []
    for size in (1, 32, 120):
        with make() as learner:
            for start in range(0, len(pictures), size):
                learner.learn_many(pictures[start : start + size], labels[start : start + size])
            answers.append([dict(answer.top) for answer in learner.predict_many(asked)])
    for other in answers[1:]:
        for mine, its in zip(answers[0], other, strict=True):
            assert mine == pytest.approx(its, abs=1e-3)


def test_evicted_samples_stay_counted_until_the_next_sleep_and_can_still_be_forgotten() -> None:
    with make(memory="30 samples") as learner:
        learner.learn_many(*labelled_pictures(20, ("red", "green")))
        assert (statistics_of(learner).samples, len(store_of(learner).samples.counted())) == (38, 28)
        learner.forget("red")
        assert_exact(learner)
        assert store_of(learner).classes.named("green").id == statistics_of(learner).class_ids.tolist()[0]
        learner.learn_many(*labelled_pictures(20, ("red",)))
        learner.sleep(updates=4, batch_size=4, tolerance=1)
        assert_exact(learner)


def test_a_class_whose_samples_were_all_evicted_is_still_predicted_after_a_sleep() -> None:
    with make(memory="4 samples") as learner:
        for label in NAMES[:3]:
            learner.learn_one(picture(label), label)
        learner.sleep(updates=8, batch_size=2, tolerance=1)
        learner.learn_many([picture("grey", seed) for seed in range(9)], [f"grey {seed}" for seed in range(9)])
        learner.sleep(updates=8, batch_size=2, tolerance=1)
        known = {label for label, _ in learner.predict_one(picture("red"), top=99).top}
        assert set(NAMES[:3]) <= known


def test_readers_follow_a_writer_and_a_writer_continues_after_it_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "colours.siesta"
    asked = [picture(label, 500) for label in NAMES[:3]]
    with make(path) as learner, Siesta.open(path, read_only=True) as reader:
        pictures, labels = labelled_pictures(30)
        for start in range(0, len(pictures), 9):
            learner.learn_many(pictures[start : start + 9], labels[start : start + 9])
            for mine, its in zip(learner.predict_many(asked), reader.predict_many(asked), strict=True):
                assert dict(mine.top) == pytest.approx(dict(its.top), abs=1e-3)
        learner.sleep(updates=4, batch_size=4, tolerance=1)
        learner.forget_sample(3)
        expected = [dict(answer.top) for answer in learner.predict_many(asked)]
        assert [dict(answer.top) for answer in reader.predict_many(asked)] == [
            pytest.approx(one, abs=1e-3) for one in expected
        ]
    with Siesta.open(path) as again:
        assert_exact(again)
        assert [dict(answer.top) for answer in again.predict_many(asked)] == [
            pytest.approx(one, abs=1e-3) for one in expected
        ]


def test_a_new_codec_gives_new_statistics() -> None:
    with make() as learner:
        learner.learn_many(*labelled_pictures(12))
        learner.sleep(updates=4, batch_size=4, tolerance=1)
        learner.learn_one(picture("grey"), "grey")
        learner.renew_codec(learner.pipeline.codec, 0.3, {2: picture("grey", 7)})
        assert_exact(learner)
        assert statistics_of(learner).samples == 37


DAMAGE = [
    "DELETE FROM gram",
    "UPDATE gram SET checksum = 5",
    "UPDATE class_sums SET count = 0",
    "UPDATE class_sums SET count = count + 64",  # as if samples had been evicted
    "DELETE FROM class_sums WHERE class_id = 1",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_statistics_are_found_and_computed_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "colours.siesta"
    with make(path) as learner:
        learner.learn_many(*labelled_pictures(15))
        store_of(learner).session.connection.execute(damage)
    with pytest.raises(Damaged, match="siesta repair"):
        Siesta.open(path, read_only=True)
    assert [found.kind for found in check(path)] == ["statistics"]
    assert repair(path) == ["the statistics of the head were computed again from stored samples"]
    assert check(path) == []
    with Siesta.open(path) as learner:
        assert_exact(learner)


def test_a_class_that_the_statistics_lack_is_found(tmp_path: Path) -> None:
    path = tmp_path / "colours.siesta"
    with make(path, memory="20 samples") as learner:
        learner.learn_many(*labelled_pictures(10, ("red", "green", "blue", "grey")))
        statistics = statistics_of(learner)
        without = {class_id: (statistics.count(class_id), statistics.sum_of(class_id)) for class_id in (1, 2, 3)}
        store = store_of(learner)
        with store.session.transaction():
            store.statistics.edit(FeatureStatistics(without, statistics.gram).arrays())
    assert [found.kind for found in check(path)] == ["statistics"]
    repair(path)
    assert check(path) == []


def test_check_finds_nothing_while_another_learns(tmp_path: Path) -> None:
    path = tmp_path / "colours.siesta"
    with make(path) as learner:
        learner.learn_many(*labelled_pictures(20))
        with Siesta.open(path, read_only=True) as reader:
            store = store_of(reader)
            snapshot = store.snapshot()
            learner.learn_one(picture("red", 99), "red")
            assert list(wrong_statistics(store, snapshot, full=True)) == []


def test_samples_are_folded_again_once_the_disk_has_refused_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_FEWEST_TO_FOLD", 4)
    with make(tmp_path / "colours.siesta") as learner:
        store = store_of(learner)

        def refuse(self: Transaction, kind: object, error: BaseException | None, traceback: object) -> None:
            folds = store.statistics.number() != number
            leave(self, kind, DiskRefused("the disk is full") if folds else error, traceback)

        leave = Transaction.__exit__
        number = store.statistics.number()
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "__exit__", refuse)
            learner.learn_many(*labelled_pictures(2, ("red", "green")))
        assert len(store.statistics.read().since.ids) == 4
        learner.learn_one(picture("red", 7), "red")
        assert len(store.statistics.read().since.ids) < 4
        assert_exact(learner)


@pytest.mark.parametrize(("name", "factor"), [("sums", 1.1), ("gram", 1.1), ("counts", 0.5)])
def test_statistics_that_are_not_those_of_the_samples_are_found(tmp_path: Path, name: str, factor: float) -> None:
    path = tmp_path / "colours.siesta"
    with make(path) as learner:
        learner.learn_many(*labelled_pictures(8, ("red", "green", "blue", "grey")))
        store = store_of(learner)
        stored = store.statistics.read()
        assert stored.arrays is not None and not len(stored.since.ids)
        with store.session.transaction():
            store.statistics.edit(
                {**stored.arrays, name: (factor * stored.arrays[name]).astype(stored.arrays[name].dtype)}
            )
    assert {found.kind for found in check(path)} == {"statistics"}
    repair(path)
    assert check(path) == []


def test_a_cosine_head_has_none() -> None:
    with create_small(head="cosine") as learner:
        learner.learn_many(*labelled_pictures(3))
        learner.sleep(updates=4, batch_size=4)
        assert store_of(learner).statistics.number() is None
        assert (learner.info().head, learner.info().bytes.statistics) == ("cosine", 0)
    with pytest.raises(BadInput, match="no head 'linear'"):
        create_small(head="linear")
