"""Held-out samples: which ones, how many, and for how long they are measured."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from siesta import Siesta
from siesta.contracts import Codes
from siesta.head import Head
from siesta.sleep.held_out import HeldOutSamples
from tests.learner.colours import picture
from tests.stores import store_of


@pytest.fixture(scope="module")
def learner() -> Iterator[Siesta]:
    """Return a learner of eight classes with forty samples each, of which five are held out."""
    with Siesta.create(":memory:", image_size=32) as made:
        width = made.encode([picture("red")]).shape[1]
        codes = np.random.default_rng(0).integers(0, 256, (320, width), np.uint8)
        made.learn_encoded(codes, [f"class {number // 40}" for number in range(320)])
        made.sleep(updates=4, batch_size=4, tolerance=1)
        yield made


def head_of(learner: Siesta) -> Head:
    return Head.from_state(store_of(learner).snapshot().weights["head"])


def test_all_are_chosen_in_random_order_up_to_a_limit(learner: Siesta) -> None:
    chosen = HeldOutSamples.choose(store_of(learner), newest=320, seed=1)
    ids, classes = store_of(learner).samples.held_out(320)
    assert len(ids) == 40
    assert sorted(zip(chosen.ids, chosen.classes, strict=True)) == sorted(zip(ids, classes, strict=True))
    few = HeldOutSamples.choose(store_of(learner), newest=320, seed=1, limit=10)
    assert few.ids.tolist() == chosen.ids[:10].tolist()
    assert HeldOutSamples.choose(store_of(learner), newest=320, seed=2).ids.tolist() != chosen.ids.tolist()
    assert len(HeldOutSamples.choose(store_of(learner), newest=40, seed=1).ids) == 5


def test_the_half_of_a_sample_depends_on_its_id_alone() -> None:
    """Held-out samples of a class are often four ids apart, and their halves are even all the same."""
    ids = np.arange(20, 4020, 4, dtype=np.int64)
    first, second = HeldOutSamples(ids, ids.astype(np.int32)).halves()
    assert sorted([*first.ids, *second.ids]) == ids.tolist() and 400 < len(first.ids) < 600
    assert (first.classes == first.ids).all() and (second.classes == second.ids).all()
    some = HeldOutSamples(ids[::-7], ids[::-7].astype(np.int32)).halves()
    assert set(some[0].ids) <= set(first.ids) and set(some[1].ids) <= set(second.ids)


def slow_down(learner: Siesta, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    features = learner.pipeline.features

    def slow(codes: Codes) -> npt.NDArray[np.float32]:
        time.sleep(seconds)
        return features(codes)

    monkeypatch.setattr(learner.pipeline, "features", slow)


def test_measuring_stops_after_its_time_but_not_before_the_first_batch(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = HeldOutSamples.choose(store_of(learner), newest=320, seed=1)
    confidence, measured = chosen.measure(store_of(learner), learner.pipeline, head_of(learner))
    assert confidence.samples == len(measured.ids) == 40
    slow_down(learner, 0.02, monkeypatch)
    confidence, measured = chosen.measure(store_of(learner), learner.pipeline, head_of(learner), seconds=0.001)
    assert confidence.samples == len(measured.ids) == 32


def test_a_sleep_measures_no_longer_than_a_tenth_of_a_time_budget(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(learner, 0.1, monkeypatch)
    monkeypatch.setattr("siesta.sleep.held_out._BATCH_SIZE", 8)
    assert learner.sleep(seconds=0.5, batch_size=4, tolerance=1).held_out == 8
    assert learner.sleep(updates=4, batch_size=4, tolerance=1).held_out == 40


def test_evicted_samples_are_left_out(learner: Siesta) -> None:
    stored = HeldOutSamples.choose(store_of(learner), newest=320, seed=1)
    samples = HeldOutSamples(np.append(10**6, stored.ids[:3]), np.append(stored.classes[:1], stored.classes[:3]))
    assert samples.measure(store_of(learner), learner.pipeline, head_of(learner))[0].samples == 3
