"""Sums of the samples that a head does not know."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.contracts import Codes
from siesta.head import Head
from siesta.sleep.counted_statistics import CountedStatistics
from siesta.sleep.delta_sums import DeltaSums

KNOWN = np.array([3.0, 1.0])


def sums_of(codes: list[tuple[int, list[int]]], statistics: CountedStatistics | None = None) -> DeltaSums:
    """Return sums over samples of which z is the code; the head knows four samples of class 1."""

    def features(codes: Codes) -> np.ndarray:
        return codes.astype(np.float32)

    head = Head.empty(features=2, scale=5.0)
    head.set_recent(1, 4 * KNOWN, 4)
    sums = DeltaSums(features, head.after_sleep(head.weights(), 5.0, float(np.linalg.norm(KNOWN))), statistics)
    if codes:
        rows = list(range(len(codes)))
        add(sums, rows, [class_id for class_id, _ in codes], [code for _, code in codes], [False] * len(codes))
    return sums


def add(sums: DeltaSums, ids: list[int], classes: list[int], codes: list[list[int]], held: list[bool]) -> None:
    sums.add(np.array(ids), np.array(classes, np.int32), np.array(codes, np.uint8), np.array(held))


def totals(sums: DeltaSums, taught: dict[int, int]) -> dict[int, tuple[int, list[float]]]:
    return {class_id: (count, total.tolist()) for class_id, count, total in sums.totals(taught)}


def test_samples_are_counted_and_added_by_class() -> None:
    sums = sums_of([(1, [1, 2]), (2, [5, 0])])
    add(sums, [9], [1], [[3, 3]], [False])
    assert totals(sums, {1: 6, 2: 1}) == {1: (2, [4.0, 5.0]), 2: (1, [5.0, 0.0])}


def test_evicted_samples_count_as_the_mean_of_their_class() -> None:
    """Of class 1 four samples are known, one was seen and five were evicted: their mean leaves the class's as it is."""
    ((_, (count, total)),) = totals(sums_of([(1, [8, 1])]), {1: 10}).items()
    mean = (4 * KNOWN + np.array([8, 1])) / 5
    assert count == 6
    assert total == pytest.approx([8, 1] + 5 * mean)
    assert (4 * KNOWN + total) / 10 == pytest.approx(mean)


def test_classes_of_which_nothing_new_is_known_are_left_out() -> None:
    assert totals(sums_of([]), {1: 4}) == {}, "the head knows all four"
    assert totals(sums_of([]), {2: 3}) == {}, "of a new class that was evicted nothing is known"


def test_samples_that_are_not_held_out_are_counted_in_the_statistics() -> None:
    counted = CountedStatistics(features=2)
    sums = sums_of([(1, [0, 2])], counted)
    add(sums, [5, 6], [1, 2], [[3, 0], [0, 7]], [False, True])
    stored = sums.statistics()
    assert stored is not None
    arrays, ids = stored
    assert (arrays["class_ids"].tolist(), arrays["counts"].tolist(), ids.tolist()) == ([1], [2], [0, 5])
    assert arrays["sums"].tolist() == [[1.0, 1.0]]
    assert sums_of([]).statistics() is None
