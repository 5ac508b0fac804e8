"""Classes that come back."""

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


def away(stream: Stream, home: dict[int, int]) -> dict[int, Counter[int]]:
    """Class -> how many of its pictures come in which steps that are not its own."""
    found: dict[int, Counter[int]] = {}
    for step, labels in enumerate(classes_in(stream)):
        for label in labels:
            if home[label] != step:
                found.setdefault(label, Counter())[step] += 1
    return found


HOMES = {label: label // 4 for label in range(12)}


def test_half_of_each_step_s_classes_lend_a_tenth_of_their_pictures_evenly() -> None:
    lent = away(blurry(dataset_of([40] * 12), 0, classes_per_step=4), HOMES)
    assert Counter(HOMES[label] for label in lent) == {0: 2, 1: 2, 2: 2}
    assert all(sorted(places.values()) == [2, 2] for places in lent.values())


@given(
    st.lists(st.integers(1, 30), min_size=4, max_size=12),
    st.integers(1, 3),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_shares_are_as_asked_and_every_class_is_at_home_in_its_step(
    sizes: list[int], per_step: int, disjoint: float, level: float, seed: int
) -> None:
    stream = blurry(dataset_of(sizes), seed, classes_per_step=per_step, disjoint=disjoint, level=level)
    home = {label: label // per_step for label in range(len(sizes))}
    lent = away(stream, home)
    for label, places in lent.items():
        assert places.total() == min(round(level * sizes[label]), sizes[label] - 1)
        assert max(places.values()) - min(places.values()) <= 1
    for step, labels in enumerate(classes_in(stream)):
        own = {label for label in home if home[label] == step}
        assert own <= set(labels)
        assert len(own & set(lent)) <= len(own) - round(disjoint * len(own))


def test_nothing_is_lent_without_a_level_or_with_disjoint_classes_only() -> None:
    for disjoint, level in ((0.5, 0.0), (1.0, 0.9)):
        stream = blurry(dataset_of([40] * 12), 0, classes_per_step=4, disjoint=disjoint, level=level)
        assert not away(stream, HOMES)


def test_nothing_goes_into_the_base_step_but_its_classes_lend() -> None:
    stream = blurry(dataset_of([40] * 12), 0, classes_per_step=4, base_classes=4, disjoint=0, level=0.5)
    lent = away(stream, HOMES)
    assert stream.base and set(lent) == set(HOMES)
    assert all(0 not in places for places in lent.values())


def test_which_classes_lend_is_the_seed_s() -> None:
    lent = {tuple(sorted(away(blurry(dataset_of([40] * 12), s, classes_per_step=4), HOMES))) for s in range(8)}
    assert len(lent) > 1


def test_a_step_is_shuffled_as_a_whole() -> None:
    for stream in (
        blurry(dataset_of([40] * 12), 0, classes_per_step=4),
        revisiting(dataset_of([40] * 12), 0, classes_per_step=4),
    ):
        assert all(len(list(groupby(step))) > 40 for step in classes_in(stream))


@given(st.lists(st.integers(1, 30), min_size=4, max_size=12), st.floats(0, 1), st.integers(0, 3))
def test_revisited_classes_come_later_only(sizes: list[int], share: float, base: int) -> None:
    stream = revisiting(dataset_of(sizes), 5, classes_per_step=2, base_classes=base, share=share)
    first = int(base > 0)
    home = {label: 0 if label < base else first + (label - base) // 2 for label in range(len(sizes))}
    last = max(home.values())
    lent = away(stream, home)
    for label, size in enumerate(sizes):
        places = lent.get(label, Counter())
        wanted = 0 if home[label] == last else min(round(share * size), size - 1)
        assert places.total() == wanted and all(step > home[label] for step in places)


@pytest.mark.parametrize(("disjoint", "level"), [(0.5, 1.1), (0.5, -0.1), (2.0, 0.5)])
def test_shares_lie_between(disjoint: float, level: float) -> None:
    with pytest.raises(BadInput, match="share from 0 to 1"):
        blurry(dataset_of([4] * 4), 0, classes_per_step=2, disjoint=disjoint, level=level)
    with pytest.raises(BadInput, match="share from 0 to 1"):
        revisiting(dataset_of([4] * 4), 0, classes_per_step=2, share=1.5)
