"""Shuffled order."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.data.orders.iid import iid
from siesta.errors import BadInput
from tests.data.streams import classes_in, comes_once, dataset_of


def test_steps_have_equal_size_and_all_classes_evenly() -> None:
    stream = iid(dataset_of([300] * 4), 0, steps=5)
    assert [len(step) for step in stream.steps()] == [240] * 5 and not stream.base
    for step in classes_in(stream):
        assert (abs(np.bincount(step, minlength=4) - 60) < 40).all()
    assert [len(step) for step in iid(dataset_of([7]), 0, steps=3).steps()] == [3, 2, 2]


def test_a_base_step_has_all_pictures_of_the_first_classes() -> None:
    stream = iid(dataset_of([5] * 4), 0, steps=2, base_classes=2)
    first, *rest = classes_in(stream)
    assert stream.base and sorted(first) == [0] * 5 + [1] * 5
    assert {label for step in rest for label in step} == {2, 3} and comes_once(stream)


@pytest.mark.parametrize(("steps", "base"), [(0, 0), (7, 0), (-1, 0), (1, 2), (1, -1)])
def test_impossible_numbers_are_refused(steps: int, base: int) -> None:
    with pytest.raises(BadInput, match=r"steps must be in 1\.\.6|base_classes must be in 0\.\.1"):
        iid(dataset_of([3, 3]), 0, steps=steps, base_classes=base)
