"""Statistics of features against the samples that they are sums of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from siesta.head.statistics import FeatureStatistics, power_normalized

WIDTH = 5


def features_of(seed: int) -> npt.NDArray[np.float32]:
    """Return z (1, D) of sample `seed`."""
    return np.random.default_rng(seed).normal(size=(1, WIDTH)).astype(np.float32)


def roots(features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the power-normalised features, by the definition."""
    return np.stack([np.copysign(np.abs(row) ** 0.5, row) / np.abs(row).sum() ** 0.5 for row in features])


def recomputed(samples: dict[int, int]) -> FeatureStatistics:
    """Return the statistics of samples, class by seed, in one call."""
    statistics = FeatureStatistics.empty(WIDTH)
    if samples:
        features = np.concatenate([features_of(seed) for seed in samples])
        statistics.add(np.array(list(samples.values())), features)
    return statistics


def assert_equal(actual: FeatureStatistics, expected: FeatureStatistics) -> None:
    assert actual.class_ids.tolist() == expected.class_ids.tolist()
    assert actual.counts.tolist() == expected.counts.tolist()
    np.testing.assert_allclose(actual.sums(), expected.sums(), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(actual.gram, expected.gram, rtol=1e-5, atol=1e-12)


CHANGES = st.lists(st.tuples(st.sampled_from(["add", "remove", "merge"]), st.integers(0, 30), st.integers(0, 3)))


@given(CHANGES)
@settings(max_examples=100, deadline=None)
def test_whatever_was_added_removed_and_merged_they_are_those_of_the_samples_left(
    changes: list[tuple[str, int, int]],
) -> None:
    statistics = FeatureStatistics.empty(WIDTH)
    samples: dict[int, int] = {}
    for change, seed, class_id in changes:
        if change == "add" and seed not in samples:
            samples[seed] = class_id
            statistics.add(np.array([class_id]), features_of(seed))
        elif change == "remove" and seed in samples:
            statistics.remove(np.array([samples.pop(seed)]), features_of(seed))
        elif change == "merge" and seed % 4 != class_id and seed % 4 in samples.values():
            samples = {key: class_id if value == seed % 4 else value for key, value in samples.items()}
            statistics.merge(seed % 4, class_id)
    assert_equal(statistics, recomputed(samples))


def test_the_covariance_is_the_pooled_one_within_classes() -> None:
    rng = np.random.default_rng(0)
    classes, features = rng.integers(0, 3, 40), rng.normal(size=(40, WIDTH))
    statistics = FeatureStatistics.empty(WIDTH)
    statistics.add(classes, features)
    units = roots(features)
    scatter = sum(np.cov(units[classes == one].T) * ((classes == one).sum() - 1) for one in range(3))
    np.testing.assert_allclose(statistics.covariance(), np.asarray(scatter) / 37, atol=1e-12)


def test_a_class_without_samples_is_gone_and_leaves_no_rounding_error_in_its_sum() -> None:
    statistics = recomputed({1: 0, 2: 5})
    statistics.remove(np.array([5]), features_of(2))
    assert (statistics.class_ids.tolist(), statistics.count(5), statistics.samples) == ([0], 0, 1)
    statistics.add(np.array([5]), features_of(3))
    np.testing.assert_allclose(statistics.sums()[1], roots(features_of(3).astype(np.float64))[0])


def test_they_are_stored_exactly_with_half_of_the_matrix() -> None:
    statistics = recomputed({seed: seed % 3 for seed in range(9)})
    arrays = statistics.arrays()
    assert arrays["gram"].shape == (WIDTH * (WIDTH + 1) // 2,)
    again = FeatureStatistics.from_arrays(arrays)
    np.testing.assert_array_equal(again.gram, statistics.gram)
    np.testing.assert_array_equal(again.sums(), statistics.sums())
    assert len(FeatureStatistics.empty(3).arrays()["gram"]) == 0, "nothing is stored before the first sample"


def test_features_of_length_zero_stay_zero() -> None:
    np.testing.assert_array_equal(power_normalized(np.zeros((2, 3))), np.zeros((2, 3)))


def test_a_copy_does_not_change_with_its_original() -> None:
    statistics = recomputed({1: 0})
    copy = statistics.copy()
    statistics.add(np.array([0]), features_of(2))
    assert_equal(copy, recomputed({1: 0}))
