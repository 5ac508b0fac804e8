"""Prototypical prefers samples near the mean of their class, without balancing classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Memory
from siesta.policies import Prototypical
from tests.policies.memories import classes_of, draw, draw_counts, embedding, memory_of


def radial_memory(sizes: list[int]) -> tuple[Memory, npt.NDArray[np.float64]]:
    """A memory whose classes lie around separate axes, and each sample's angle from its axis: a fifth are near it."""
    memory = memory_of(sizes)
    rng, names = np.random.default_rng(1), np.unique(memory.classes)
    rows = np.searchsorted(names, memory.classes)
    angle = np.where(rng.random(len(rows)) < 0.2, 0.1, 1.0) * rng.uniform(0.9, 1.1, len(rows))
    aside = rng.normal(size=(len(rows), 20))
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    axes = np.eye(len(names))[rows]
    z = np.concatenate([np.cos(angle)[:, None] * axes, np.sin(angle)[:, None] * aside], axis=1)
    return embedding(memory, z), angle


def test_samples_near_the_mean_are_drawn_more_often() -> None:
    memory, angle = radial_memory([400, 400])
    counts = draw_counts(memory, draw(Prototypical(), memory, 20_000))
    typical = angle < 0.5
    assert counts[typical].mean() > 4 * counts[~typical].mean()
    assert counts[~typical].sum() > 0, "samples far from the mean are drawn too"


def test_it_does_not_balance_classes() -> None:
    memory, _ = radial_memory([900, 100])
    rare = (classes_of(memory, draw(Prototypical(), memory, 10_000)) == 4).mean()
    assert rare == pytest.approx(0.1, abs=0.05)


def test_the_only_sample_of_a_class_does_not_dominate() -> None:
    memory, _ = radial_memory([400, 400, 1])
    alone = memory.ids[memory.classes == 7]
    share = float((draw(Prototypical(), memory, 20_000) == alone).mean())
    assert 1 / 801 < share < 15 / 801
