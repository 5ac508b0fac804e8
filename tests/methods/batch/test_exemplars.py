"""Exemplars: iCaRL's order against independent code, and their state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from siesta.methods.batch.exemplars import Exemplars, unit_rows
from siesta.selections import herding, random


def icarl_order(features: npt.NDArray[np.floating], count: int) -> list[int]:
    """Algorithm 4 of iCaRL, written out."""
    mean = features.mean(axis=0)
    chosen: list[int] = []
    for k in range(1, count + 1):
        best, distance = -1, float("inf")
        for candidate in range(len(features)):
            if candidate not in chosen:
                total = features[[*chosen, candidate]].sum(axis=0)
                if np.linalg.norm(mean - total / k) < distance:
                    best, distance = candidate, float(np.linalg.norm(mean - total / k))
        chosen.append(best)
    return chosen


def test_exemplars_are_chosen_in_icarls_order_at_length_one() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((12, 5)) * rng.uniform(1, 9, (12, 1))
    ids = np.arange(100, 112)
    exemplars = Exemplars()
    exemplars.select(3, ids, features, 6, herding, rng)
    assert exemplars.of(3).tolist() == ids[icarl_order(unit_rows(features), 6)].tolist()
    assert exemplars.of(0).tolist() == []


def test_the_most_important_stay() -> None:
    exemplars = Exemplars({1: np.array([5, 2, 9]), 0: np.array([7])})
    exemplars.shorten(2)
    assert exemplars.ids().tolist() == [5, 2, 7] and len(exemplars) == 3


def test_fewer_images_than_asked_for_are_all_kept() -> None:
    exemplars = Exemplars()
    exemplars.select(0, np.array([4, 8]), np.ones((2, 3)), 5, random, np.random.default_rng(0))
    assert sorted(exemplars.of(0).tolist()) == [4, 8]


def test_the_state_keeps_the_order() -> None:
    exemplars = Exemplars({2: np.array([5, 2]), 0: np.array([7, 1])})
    restored = Exemplars.from_state(exemplars.state())
    assert restored.of(2).tolist() == [5, 2] and restored.of(0).tolist() == [7, 1]
    assert restored.ids().tolist() == exemplars.ids().tolist()
    assert len(Exemplars.from_state(Exemplars().state())) == 0
