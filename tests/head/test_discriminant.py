"""The discriminant against its formula, written out for each class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.head import Discriminant, FeatureStatistics, Head
from siesta.head.discriminant import discriminant_for
from tests.head.test_statistics import roots

WIDTH = 12
Floats = npt.NDArray[np.float64]


def samples(seed: int, count: int, classes: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return class ids and z: one direction for each class, with noise."""
    rng = np.random.default_rng(seed)
    ids = 3 + rng.permutation(np.arange(count) % classes)
    directions = np.random.default_rng(99).normal(size=(10, WIDTH))
    return ids, (1 + seed % 3) * (directions[ids - 3] + 0.7 * rng.normal(size=(count, WIDTH)))


def statistics_of(ids: npt.NDArray[np.int64], features: Floats) -> FeatureStatistics:
    statistics = FeatureStatistics.empty(WIDTH)
    statistics.add(ids, features)
    return statistics


def expected_scores(ids: npt.NDArray[np.int64], features: Floats, query: Floats, shrinkage: float) -> Floats:
    """Return the scores (B, K) up to a factor, by the textbook."""
    units, classes = roots(features), np.unique(ids)
    means = np.stack([units[ids == one].mean(axis=0) for one in classes])
    residuals = units - means[np.searchsorted(classes, ids)]
    covariance = residuals.T @ residuals / (len(ids) - len(classes))
    shrunk = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / WIDTH * np.eye(WIDTH)
    precision = np.linalg.inv(shrunk)
    columns = []
    for one, mean in zip(classes, means, strict=True):
        square = mean @ precision @ mean - np.trace(precision @ covariance) / (ids == one).sum()
        columns.append(roots(query) @ precision @ mean - square / 2)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("shrinkage", [0.2, 0.8])
def test_scores_are_those_of_linear_discriminant_analysis(shrinkage: float) -> None:
    ids, features = samples(0, 60, 4)
    query = samples(1, 9, 4)[1]
    logits = Discriminant(statistics_of(ids, features), shrinkage).logits(query)
    expected = expected_scores(ids, features, query, shrinkage)
    factor = np.vdot(expected, logits) / np.vdot(expected, expected)
    np.testing.assert_allclose(logits, factor * expected, rtol=1e-3, atol=1e-3 * np.abs(logits).max())


def test_a_class_of_one_sample_can_win_beside_classes_of_many() -> None:
    """Without the correction for the noise of its mean it hardly ever does."""
    ids, features = samples(2, 300, 5)
    keep = (ids != 7) | (np.cumsum(ids == 7) == 1)
    discriminant = Discriminant(statistics_of(ids[keep], features[keep]))
    query_ids, query = samples(3, 200, 5)
    answers = discriminant.class_ids[discriminant.logits(query).argmax(axis=1)]
    assert (answers[query_ids == 7] == 7).mean() > 0.5
    assert (answers[query_ids != 7] == query_ids[query_ids != 7]).mean() > 0.5


def test_added_samples_move_the_means_and_folding_renews_the_covariance() -> None:
    ids, features = samples(4, 40, 3)
    later_ids, later = samples(5, 30, 6)
    query = samples(6, 8, 6)[1]
    discriminant = Discriminant(statistics_of(ids, features))
    discriminant.add(later_ids[:10], later[:10])
    discriminant.add(later_ids[10:], later[10:])
    assert discriminant.added() == 30
    assert discriminant.class_ids.tolist() == [3, 4, 5, *dict.fromkeys(later_ids[later_ids > 5].tolist())]
    for count in (0, 12, None):
        folded = discriminant.folded(count)
        everything = np.concatenate([ids, later_ids]), np.concatenate([features, later])
        boundary = len(ids) + (len(later_ids) if count is None else count)
        again = Discriminant(statistics_of(everything[0][:boundary], everything[1][:boundary]))
        again.add(everything[0][boundary:], everything[1][boundary:])
        order, again_order = np.argsort(folded.class_ids), np.argsort(again.class_ids)
        np.testing.assert_allclose(folded.logits(query)[:, order], again.logits(query)[:, again_order], atol=1e-4)
        assert folded.added() == len(everything[0]) - boundary


def test_answers_without_any_covariance_are_those_of_the_nearest_mean() -> None:
    features = np.eye(WIDTH)[:3]
    discriminant = Discriminant(FeatureStatistics.empty(WIDTH))
    discriminant.add(np.array([9, 4, 6]), features)
    query = features + 0.2 * np.random.default_rng(0).normal(size=features.shape)
    assert discriminant.class_ids[discriminant.logits(query).argmax(axis=1)].tolist() == [9, 4, 6]


def test_a_class_that_only_the_head_knows_keeps_its_vector() -> None:
    ids, features = samples(7, 40, 2)
    head = Head(np.array([3, 8]), np.eye(2, WIDTH, dtype=np.float32) * 5, np.array([4, 4]), 16.0)
    discriminant = discriminant_for(statistics_of(ids, features), head)
    assert discriminant.class_ids.tolist() == [3, 4, 8]
    assert discriminant.logits(np.eye(WIDTH)[1:2]).argmax() == 2
    assert 8 not in discriminant.folded().base.class_ids, "its vector is no sample"
    assert discriminant.folded().class_ids.tolist() == [3, 4, 8]


def test_one_class_gets_every_answer() -> None:
    discriminant = Discriminant(FeatureStatistics.empty(WIDTH))
    discriminant.add(np.array([5]), np.ones((1, WIDTH)))
    assert discriminant.logits(np.ones((2, WIDTH))).shape == (2, 1)
    assert np.isfinite(discriminant.logits(-np.ones((1, WIDTH)))).all()


def test_closeness_is_the_cosine_in_the_metric_of_the_total_covariance() -> None:
    rng = np.random.default_rng(5)
    centres = rng.normal(0, 1, (4, 6))
    classes = np.repeat(np.arange(4), 30)
    features = centres[classes] + rng.normal(0, 0.4, (120, 6))
    statistics = FeatureStatistics.empty(6)
    statistics.add(classes, features)
    discriminant = Discriminant(statistics)
    asked = np.concatenate([features[::30], rng.normal(0, 1, (3, 6))]).astype(np.float32)
    rows = discriminant.logits(asked).argmax(axis=1)
    found = discriminant.closeness(asked, rows)

    units = roots(features)
    covariance = np.cov(units.T, bias=True)
    covariance = 0.8 * covariance + 0.2 * np.trace(covariance) / 6 * np.eye(6)
    whitened = np.linalg.cholesky(np.linalg.inv(covariance)).T
    means = np.stack([units[classes == row].mean(axis=0) for row in rows]) - units.mean(axis=0)
    seen, expected = ((part @ whitened.T) for part in (roots(asked.astype(np.float64)) - units.mean(axis=0), means))
    cosines = (seen * expected).sum(axis=1) / np.linalg.norm(seen, axis=1) / np.linalg.norm(expected, axis=1)
    assert found == pytest.approx(cosines, abs=1e-4) and (np.abs(cosines) <= 1).all()
    assert Discriminant(FeatureStatistics.empty(6)).closeness(asked, rows) is None, "there is no metric yet"


def test_rounding_errors_are_no_covariance_where_the_samples_of_each_class_are_equal() -> None:
    rng = np.random.default_rng(5)
    for copies in (3, 7, 11):
        features = rng.normal(size=(40, 64))
        ids = np.repeat(np.arange(40), copies)
        statistics = FeatureStatistics.empty(64)
        statistics.add(ids, np.repeat(features, copies, axis=0))
        discriminant = Discriminant(statistics)
        assert (discriminant.logits(features).argmax(axis=1) == np.arange(40)).all()
        closeness = discriminant.closeness(features, np.arange(40))
        assert closeness is not None
        assert closeness == pytest.approx(1.0)
