"""Herding against the formula of iCaRL's algorithm 4."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.selections.herding import herding


def algorithm_4(features: npt.NDArray[np.float64], count: int) -> list[int]:
    """p_k = argmin over x of |mean - (x + p_1 + ... + p_(k-1)) / k|."""
    chosen: list[int] = []
    for k in range(1, count + 1):
        distances = [
            np.inf
            if x in chosen
            else float(np.linalg.norm(features.mean(axis=0) - features[[*chosen, x]].sum(axis=0) / k))
            for x in range(len(features))
        ]
        chosen.append(int(np.argmin(distances)))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_it_follows_the_formula(seed: int) -> None:
    features = np.random.default_rng(seed).standard_normal((25, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    assert herding(features, 25, np.random.default_rng(0)).tolist() == algorithm_4(features, 25)


def test_the_chosen_samples_have_a_mean_nearer_to_the_class_mean_than_random_ones() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((200, 8)) + 3 * (rng.random((200, 1)) < 0.2)  # two groups of unequal size

    def distance(rows: npt.NDArray[np.int64]) -> float:
        return float(np.linalg.norm(features[rows].mean(axis=0) - features.mean(axis=0)))

    random = [distance(rng.permutation(200)[:10]) for _ in range(100)]
    assert distance(herding(features, 10, rng)) < min(random)


def test_it_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    herding(np.eye(4), 4, rng)
    assert rng.random() == np.random.default_rng(0).random()
