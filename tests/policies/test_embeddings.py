"""Numbers computed from chunks of embeddings against NumPy on all embeddings at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.policies.embeddings import closeness, distances_to_mean, normalized, score_samples
from tests.policies.memories import embedding, memory_of

RNG = np.random.default_rng


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_distances_are_cosine_distances_to_the_class_mean(sizes: list[int]) -> None:
    memory = memory_of(sizes)
    z = RNG(1).normal(size=(len(memory.ids), 5)).astype(np.float32)
    distances = distances_to_mean(embedding(memory, z), RNG(0))
    for position, class_id in enumerate(memory.classes):
        mean = z[memory.classes == class_id].mean(axis=0)
        cosine = z[position] @ mean / np.linalg.norm(z[position]) / np.linalg.norm(mean)
        assert distances[position] == pytest.approx(1 - cosine, abs=1e-5)


def test_a_class_too_large_for_ram_is_split_into_parts() -> None:
    memory = memory_of([2000, 5])
    z = np.array([3.0, 0.0]) + RNG(1).normal(size=(2005, 2))
    whole = distances_to_mean(embedding(memory, z), RNG(0))
    parts = distances_to_mean(embedding(memory, z), RNG(0), samples_in_ram=256)
    assert not np.array_equal(whole, parts) and parts == pytest.approx(whole, abs=0.05)


def test_removed_samples_score_zero_and_are_farthest_from_the_mean() -> None:
    memory = memory_of([6, 6])
    removed = memory.ids[[2, 5]].tolist()
    embedded = embedding(memory, RNG(1).normal(size=(12, 3)), removed=removed)
    assert np.flatnonzero(score_samples(embedded, lambda chunk: np.ones(len(chunk.ids))) == 0).tolist() == [2, 5]
    distances = distances_to_mean(embedded, RNG(0))
    assert (distances[[2, 5]] == distances.max()).all()


def test_closeness_falls_with_distance_and_is_bounded() -> None:
    distances = np.array([0.0, 0.5, 1.0, 2.0])
    priorities = closeness(distances)
    assert (np.diff(priorities) < 0).all() and priorities[0] / priorities.mean() < 10
    assert closeness(np.zeros(3)).tolist() == [1, 1, 1]


def test_normalized_rows_have_length_one_and_zeros_stay() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(normalized(rows), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
