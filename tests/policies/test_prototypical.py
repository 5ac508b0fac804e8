"""Prototypical, balanced or not: what lies near the mean of its class comes more often."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Memory
from siesta.policies import Prototypical
from tests.policies.memories import classes_of, draw, embedding, memory_of, times


def spread(sizes: list[int]) -> tuple[Memory, npt.NDArray[np.float64]]:
    """Classes around axes of their own, and each sample's angle from its class's axis: few near, most far out."""
    memory = memory_of(sizes)
    rng, names = np.random.default_rng(1), np.unique(memory.classes)
    rows = np.searchsorted(names, memory.classes)
    angle = np.where(rng.random(len(rows)) < 0.2, 0.1, 1.0) * rng.uniform(0.9, 1.1, len(rows))
    aside = rng.normal(size=(len(rows), 20))
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    axes = np.eye(len(names))[rows]
    z = np.concatenate([np.cos(angle)[:, None] * axes, np.sin(angle)[:, None] * aside], axis=1)
    return embedding(memory, z), angle


def test_typical_samples_come_more_often() -> None:
    memory, angle = spread([400, 400])
    picks = times(memory, draw(Prototypical(), memory, 20_000))
    typical = angle < 0.5
    assert picks[typical].mean() > 4 * picks[~typical].mean()
    assert picks[~typical].sum() > 0, "the others are rarer, not gone"


def test_it_does_not_balance_classes() -> None:
    memory, _ = spread([900, 100])
    rare = (classes_of(memory, draw(Prototypical(), memory, 10_000)) == 4).mean()
    assert rare == pytest.approx(0.1, abs=0.05)


def test_the_only_sample_of_a_class_does_not_take_over() -> None:
    memory, _ = spread([400, 400, 1])
    alone = memory.ids[memory.classes == 7]
    share = float((draw(Prototypical(), memory, 20_000) == alone).mean())
    assert 1 / 801 < share < 15 / 801
