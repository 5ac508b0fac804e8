"""Class-incremental order."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data.orders.class_incremental import class_incremental
from siesta.errors import BadInput
from tests.data.streams import classes_in, dataset_of


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 10), st.data())
def test_steps_have_consecutive_classes_after_the_base(sizes: list[int], per_step: int, data: st.DataObject) -> None:
    base = data.draw(st.integers(0, len(sizes)))
    stream = class_incremental(dataset_of(sizes), 3, classes_per_step=per_step, base_classes=base)
    numbers = list(range(len(sizes)))
    due = [numbers[:base]] if base else []
    due += [numbers[start : start + per_step] for start in range(base, len(sizes), per_step)]
    found = classes_in(stream)
    assert [sorted(set(step)) for step in found] == due
    assert [[label for label, _ in groupby(step)] for step in found] == due, "class by class inside a step"
    assert stream.base == (base > 0)


def test_pictures_are_shuffled_within_their_class() -> None:
    dataset = dataset_of([40, 40])
    first, second = class_incremental(dataset, 0, classes_per_step=1).steps()
    numbers = [[int(dataset.train.names[i].split("/")[2][:-4]) for i in step] for step in (first, second)]
    assert sorted(numbers[0]) == sorted(numbers[1]) == list(range(40))
    assert numbers[0] != list(range(40)) and numbers[0] != numbers[1]


def test_a_step_can_be_shuffled_as_a_whole() -> None:
    stream = class_incremental(dataset_of([20] * 4), 0, classes_per_step=2, shuffle_step=True)
    for step, own in zip(classes_in(stream), ({0, 1}, {2, 3}), strict=True):
        assert set(step) == own and len(list(groupby(step))) > 4


def test_the_seed_can_decide_the_order_of_classes() -> None:
    orders = set()
    for seed in range(5):
        stream = class_incremental(dataset_of([2] * 10), seed, classes_per_step=4, base_classes=2, shuffle_classes=True)
        found = classes_in(stream)
        assert [len(set(step)) for step in found] == [2, 4, 4]
        orders.add(tuple(label for step in found for label, _ in groupby(step)))
    assert len(orders) == 5 and all(sorted(order) == list(range(10)) for order in orders)


@pytest.mark.parametrize(("per_step", "base"), [(0, 0), (-1, 0), (1, -1), (1, 4)])
def test_impossible_numbers_are_refused(per_step: int, base: int) -> None:
    with pytest.raises(BadInput, match=r"classes_per_step must be 1 or more|base_classes must be in 0\.\.3"):
        class_incremental(dataset_of([2, 2, 2]), 0, classes_per_step=per_step, base_classes=base)
