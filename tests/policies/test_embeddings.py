"""What is read off embeddings, against NumPy on all of them at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.policies import embeddings
from siesta.policies.embeddings import closeness, distances_to_mean, scores
from tests.policies.memories import embedding, memory_of

RNG = np.random.default_rng


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_distances_are_those_to_the_mean_of_the_class(sizes: list[int]) -> None:
    memory = memory_of(sizes)
    z = RNG(1).normal(size=(len(memory.ids), 5)).astype(np.float32)
    found = distances_to_mean(embedding(memory, z), RNG(0))
    for position, class_id in enumerate(memory.classes):
        mean = z[memory.classes == class_id].mean(axis=0)
        cosine = z[position] @ mean / np.linalg.norm(z[position]) / np.linalg.norm(mean)
        assert found[position] == pytest.approx(1 - cosine, abs=1e-5)


def test_a_class_too_large_for_ram_is_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = memory_of([2000, 5])
    z = np.array([3.0, 0.0]) + RNG(1).normal(size=(2005, 2))
    whole = distances_to_mean(embedding(memory, z), RNG(0))
    monkeypatch.setattr(embeddings, "_HELD", 256)
    parts = distances_to_mean(embedding(memory, z), RNG(0))
    assert not np.array_equal(whole, parts) and parts == pytest.approx(whole, abs=0.05)


def test_samples_that_are_gone_are_scored_zero_and_lie_farthest() -> None:
    memory = memory_of([6, 6])
    gone = memory.ids[[2, 5]].tolist()
    some = embedding(memory, RNG(1).normal(size=(12, 3)), gone=gone)
    assert np.flatnonzero(scores(some, lambda chunk: np.ones(len(chunk.ids))) == 0).tolist() == [2, 5]
    distances = distances_to_mean(some, RNG(0))
    assert (distances[[2, 5]] == distances.max()).all()


def test_closeness_falls_with_distance_and_is_bounded() -> None:
    distances = np.array([0.0, 0.5, 1.0, 2.0])
    found = closeness(distances)
    assert (np.diff(found) < 0).all() and found[0] / closeness(distances).mean() < 10
    assert closeness(np.zeros(3)).tolist() == [1, 1, 1]
