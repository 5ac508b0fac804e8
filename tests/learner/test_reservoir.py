"""The reservoir is a uniform sample of a stream, however the stream is divided."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siesta.learner.reservoir import Reservoir

IMAGES = np.random.default_rng(0).integers(0, 255, (20, 32, 32, 3), dtype=np.uint8)


def sampled(size: int, seed: int, chunks: list[int]) -> list[int]:
    reservoir = Reservoir(size, np.random.default_rng(seed))
    start = 0
    for length in chunks:
        reservoir.add(np.arange(start, start + length))
        start += length
        assert len(reservoir.rows()) == min(size, start), "the sample is bounded, and full as soon as possible"
    rows: list[int] = reservoir.rows().tolist()
    return rows


@given(st.integers(1, 40), st.integers(0, 10), st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_the_sample_does_not_depend_on_the_chunks(size: int, seed: int, chunks: list[int]) -> None:
    rows, total = sampled(size, seed, chunks), sum(chunks)
    assert rows == sampled(size, seed, [1] * total)
    assert len(set(rows)) == len(rows) == min(size, total) and set(rows) <= set(range(total))
    if total <= size:
        assert rows == list(range(total)), "all rows, in order"


def test_the_sample_equals_that_of_algorithm_r() -> None:
    """Algorithm R as in textbooks, row by row with the same random numbers."""
    for seed in range(20):
        random, kept = np.random.default_rng(seed), []
        for position in range(200):
            place = int(random.random() * (position + 1))
            if position < 7:
                kept.append(position)
            elif place < 7:
                kept[place] = position
        assert sampled(7, seed, [50, 1, 149]) == kept


def test_every_row_is_equally_likely() -> None:
    size = 10
    total = 50
    runs = 4000
    counts = np.bincount([row for seed in range(runs) for row in sampled(size, seed, [13, 37])], minlength=total)
    chance = size / total
    spread = np.sqrt(runs * chance * (1 - chance))
    assert np.abs(counts - runs * chance).max() < 4.5 * spread
    chi_square = ((counts - runs * chance) ** 2 / (runs * chance * (1 - chance))).sum()
    assert chi_square < 90, "49 degrees of freedom: beyond one in 3,000"


def test_rows_can_have_any_shape() -> None:
    reservoir = Reservoir(5, np.random.default_rng(0))
    for pixels in IMAGES:
        reservoir.add(pixels[None])
    kept = reservoir.rows()
    assert kept.shape == (5, 32, 32, 3) and kept.dtype == np.uint8
    assert all(any(np.array_equal(row, pixels) for pixels in IMAGES) for row in kept)
