"""Random selection: every sample is as likely as any other."""

from __future__ import annotations

import numpy as np

from siesta.selections.random import random


def test_every_sample_is_chosen_equally_often() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(10)
    for _ in range(3000):
        counts[random(np.zeros((10, 1)), 4, rng)] += 1
    assert ((counts - 1200) ** 2 / 1200).sum() < 27.9  # the 0.999 quantile of chi-square with 9 degrees of freedom


def test_the_seed_decides() -> None:
    first, other = (random(np.zeros((50, 1)), 50, np.random.default_rng(seed)).tolist() for seed in (1, 2))
    assert first != other
