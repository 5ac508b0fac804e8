"""The random streams: each purpose has one of its own, and recorded experiments can be repeated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data.shuffling import shuffled
from siesta.rng import Purpose, derived_seed, generator

KEYS: dict[Purpose, Callable[..., tuple[int, ...]]] = {
    Purpose.EVICTION: lambda seed, newest: (seed, 1, newest),
    Purpose.REHEARSAL: lambda seed: (seed, 2),
    Purpose.AUGMENTATION: lambda seed: (seed, 3),
    Purpose.CODEC_VECTORS: lambda seed: (seed, 0),
    Purpose.CODEC_FILES: lambda seed: (seed,),
    Purpose.CODEC_ERROR: lambda seed: (seed, 1),
    Purpose.CHECK: lambda newest: (newest, 50),
    Purpose.SLEEP_ROUND: lambda seed, number: (seed, 5, number),
    Purpose.STATISTICS: lambda seed, newest: (seed, 6, newest),
    Purpose.CROPS: lambda seed: (seed, 7),
    Purpose.SLEEP: lambda seed, generation: (seed, generation),
    Purpose.METHOD_ROW: lambda seed, row: (seed, 11, row),
    Purpose.METHOD_STEP: lambda seed, seen: (seed, 12, seen),
    Purpose.METHOD_TRAINING: lambda seed, seen: (seed, 13, seen),
    Purpose.METHOD_SLEEP: lambda seed, seen: (seed, 15, seen),
    Purpose.VALIDATION_SPLIT: lambda seed, label: (seed, 1, label),
    Purpose.CLASS_ORDER: lambda seed: (seed, 10),
    Purpose.CLASS_SAMPLES: lambda seed, label: (seed, 11, label),
    Purpose.STEP_SAMPLES: lambda seed, step: (seed, 12, step),
    Purpose.IID_SAMPLES: lambda seed: (seed, 20),
    Purpose.IID_BASE: lambda seed: (seed, 21),
    Purpose.BLURRY_CLASSES: lambda seed, step: (seed, 30, step),
    Purpose.BLURRY_LEAVERS: lambda seed, label: (seed, 31, label),
    Purpose.BLURRY_PLACES: lambda seed, label: (seed, 32, label),
    Purpose.BLURRY_STEP: lambda seed, step: (seed, 33, step),
    Purpose.TAIL_RANKS: lambda seed: (seed, 40),
    Purpose.TAIL_SAMPLES: lambda seed, label: (seed, 41, label),
    Purpose.PRETRAIN_ORDER: lambda seed, epoch: (seed, 1, epoch),
    Purpose.PRETRAIN_CROPS: lambda seed, epoch, picture: (seed, 2, epoch, picture),
    Purpose.TOUR_SPLIT: lambda seed: (seed,),
    Purpose.TOUR_STEP: lambda seed, step: (seed, step),
}
"""The seed sequence of each stream: as in version 0.1, or as when it was new."""


def test_purposes_are_unique() -> None:
    assert len(Purpose.__members__) == len({purpose.value for purpose in Purpose}), "an alias is no purpose of its own"


def test_only_the_stream_of_held_out_samples_has_changed_since_0_1() -> None:
    new = {Purpose.METHOD_SELECTION, Purpose.METHOD_GROWTH, Purpose.METHOD_STAGE, Purpose.METHOD_EXEMPLARS}
    new |= {Purpose.INITIAL_WEIGHTS, Purpose.RANDOM_FEATURES}
    assert set(Purpose) - set(KEYS) == {Purpose.HELD_OUT_SAMPLES} | new
    drawn = generator(5, Purpose.HELD_OUT_SAMPLES).random(4).tolist()
    for purpose in (Purpose.REHEARSAL, Purpose.AUGMENTATION):
        assert drawn != generator(5, purpose).random(4).tolist(), "the streams of one sleep differ"


SHARED = [
    {Purpose.EVICTION, Purpose.VALIDATION_SPLIT, Purpose.PRETRAIN_ORDER},
    {Purpose.CODEC_VECTORS, Purpose.CODEC_FILES, Purpose.TOUR_SPLIT},
    {Purpose.CODEC_ERROR, Purpose.SLEEP, Purpose.TOUR_STEP},
    {Purpose.METHOD_ROW, Purpose.CLASS_SAMPLES},
    {Purpose.METHOD_STEP, Purpose.STEP_SAMPLES},
]
"""Purposes of different components whose streams are equal if their seeds are, since version 0.1."""


def test_no_new_purpose_shares_a_stream() -> None:
    streams: dict[tuple[float, ...], set[Purpose]] = {}
    for purpose in Purpose:
        count = KEYS[purpose].__code__.co_argcount - 1 if purpose in KEYS else 0
        stream = generator(5, purpose, *(1, 8)[:count]).random(4)
        streams.setdefault(tuple(stream), set()).add(purpose)
    assert [purposes for purposes in streams.values() if len(purposes) > 1] == SHARED


@pytest.mark.parametrize("purpose", KEYS, ids=lambda purpose: purpose.name.lower())
@pytest.mark.parametrize("seed", [0, 5, 2**63 - 1])
def test_a_stream_is_that_of_version_0_1(purpose: Purpose, seed: int) -> None:
    key = KEYS[purpose]
    indices = (3, 8)[: key.__code__.co_argcount - 1]
    expected = key(seed, *indices)
    assert generator(seed, purpose, *indices).random(5).tolist() == np.random.default_rng(expected).random(5).tolist()
    state = np.random.SeedSequence(expected).generate_state(1, np.uint64)[0]
    assert derived_seed(seed, purpose, *indices) == int(state) >> 1


def test_orders_are_those_of_version_0_1() -> None:
    keys = np.random.PCG64(np.random.SeedSequence((7, 11, 2))).random_raw(50)
    assert shuffled(np.arange(50), 7, Purpose.CLASS_SAMPLES, 2).tolist() == np.argsort(keys).tolist()


@given(st.integers(0, 2**63 - 1), st.sampled_from(Purpose), st.lists(st.integers(0, 2**40), max_size=2))
def test_a_derived_seed_is_one_that_generators_accept(seed: int, purpose: Purpose, indices: list[int]) -> None:
    assert 0 <= derived_seed(seed, purpose, *indices) < 2**63


def test_indices_and_purposes_of_one_component_give_different_streams() -> None:
    methods = [purpose for purpose in Purpose if purpose.name.startswith("METHOD")]
    streams = [generator(1, purpose, index).random(3).tolist() for purpose in methods for index in range(4)]
    assert len({tuple(stream) for stream in streams}) == len(streams)
