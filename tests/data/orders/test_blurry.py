"""Blurry and revisiting orders."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data import Stream
from siesta.data.orders.blurry import blurry, revisiting
from siesta.errors import BadInput
from tests.data.streams import classes_in, dataset_of


def moved_pictures(stream: Stream, own_step: dict[int, int]) -> dict[int, Counter[int]]:
    """Return, by class, how many of its pictures come in each step but its own."""
    found: dict[int, Counter[int]] = {}
    for step, labels in enumerate(classes_in(stream)):
        for label in labels:
            if own_step[label] != step:
                found.setdefault(label, Counter())[step] += 1
    return found


OWN_STEP = {label: label // 4 for label in range(12)}


def test_half_of_the_classes_of_a_step_spread_a_tenth_of_their_pictures_evenly() -> None:
    moved = moved_pictures(blurry(dataset_of([40] * 12), 0, classes_per_step=4), OWN_STEP)
    assert Counter(OWN_STEP[label] for label in moved) == {0: 2, 1: 2, 2: 2}
    assert all(sorted(places.values()) == [2, 2] for places in moved.values())


@given(
    st.lists(st.integers(1, 30), min_size=4, max_size=12),
    st.integers(1, 3),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_shares_are_as_given_and_every_class_has_pictures_in_its_own_step(
    sizes: list[int], per_step: int, disjoint: float, level: float, seed: int
) -> None:
    stream = blurry(dataset_of(sizes), seed, classes_per_step=per_step, disjoint=disjoint, level=level)
    own_step = {label: label // per_step for label in range(len(sizes))}
    moved = moved_pictures(stream, own_step)
    for label, places in moved.items():
        assert places.total() == min(round(level * sizes[label]), sizes[label] - 1)
        assert max(places.values()) - min(places.values()) <= 1
    for step, labels in enumerate(classes_in(stream)):
        own = {label for label in own_step if own_step[label] == step}
        assert own <= set(labels)
        assert len(own & set(moved)) <= len(own) - round(disjoint * len(own))


def test_no_picture_moves_without_a_level_or_with_disjoint_classes_only() -> None:
    for disjoint, level in ((0.5, 0.0), (1.0, 0.9)):
        stream = blurry(dataset_of([40] * 12), 0, classes_per_step=4, disjoint=disjoint, level=level)
        assert not moved_pictures(stream, OWN_STEP)


def test_no_picture_moves_to_the_base_step_but_its_classes_move() -> None:
    stream = blurry(dataset_of([40] * 12), 0, classes_per_step=4, base_classes=4, disjoint=0, level=0.5)
    moved = moved_pictures(stream, OWN_STEP)
    assert stream.base and set(moved) == set(OWN_STEP)
    assert all(0 not in places for places in moved.values())


def test_the_seed_decides_which_classes_move() -> None:
    moved = {
        tuple(sorted(moved_pictures(blurry(dataset_of([40] * 12), s, classes_per_step=4), OWN_STEP))) for s in range(8)
    }
    assert len(moved) > 1


def test_a_step_is_shuffled_as_a_whole() -> None:
    for stream in (
        blurry(dataset_of([40] * 12), 0, classes_per_step=4),
        revisiting(dataset_of([40] * 12), 0, classes_per_step=4),
    ):
        assert all(len(list(groupby(step))) > 40 for step in classes_in(stream))


@given(st.lists(st.integers(1, 30), min_size=4, max_size=12), st.floats(0, 1), st.integers(0, 3))
def test_revisited_classes_return_in_later_steps_only(sizes: list[int], share: float, base: int) -> None:
    stream = revisiting(dataset_of(sizes), 5, classes_per_step=2, base_classes=base, share=share)
    first = int(base > 0)
    own_step = {label: 0 if label < base else first + (label - base) // 2 for label in range(len(sizes))}
    last = max(own_step.values())
    moved = moved_pictures(stream, own_step)
    for label, size in enumerate(sizes):
        places = moved.get(label, Counter())
        wanted = 0 if own_step[label] == last else min(round(share * size), size - 1)
        assert places.total() == wanted and all(step > own_step[label] for step in places)


@pytest.mark.parametrize(("disjoint", "level"), [(0.5, 1.1), (0.5, -0.1), (2.0, 0.5)])
def test_shares_outside_of_0_and_1_are_refused(disjoint: float, level: float) -> None:
    with pytest.raises(BadInput, match=r"must be in 0\.\.1"):
        blurry(dataset_of([4] * 4), 0, classes_per_step=2, disjoint=disjoint, level=level)
    with pytest.raises(BadInput, match=r"must be in 0\.\.1"):
        revisiting(dataset_of([4] * 4), 0, classes_per_step=2, share=1.5)
