"""SLDA against its definition in NumPy, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from siesta.methods import SLDA
from siesta.methods.slda import SLDASettings
from tests.methods.conftest import Start

Floats = npt.NDArray[np.float64]


def batch_definition(z: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Class means, and the mean outer product of what is left of z without them."""
    means = np.stack([z[rows == row].mean(axis=0) for row in range(rows.max() + 1)])
    rest = z - means[rows]
    return means, rest.T @ rest / len(z)


@pytest.mark.parametrize("seed", range(3))
def test_the_stream_ends_where_a_batch_would(starts: dict[str, Start], seed: int) -> None:
    method = SLDA(starts["opq"].folder(), SLDASettings(), 0)
    rng = np.random.default_rng(seed)
    codes, labels = starts["opq"].lesson(rng.integers(0, 5, 70).tolist(), seed)
    method.learn_many(codes[:9], labels[:9])
    method.learn_many(codes[9:], labels[9:])
    z = method._home.pipeline.features(codes).astype(np.float64)
    rows = np.array([method._home.labels.index(label) for label in labels])
    means, covariance = batch_definition(z, rows)
    np.testing.assert_allclose(method.means(), means, atol=1e-5)  # batches of pictures round differently in float32
    np.testing.assert_allclose(method.covariance(), covariance, atol=1e-5 * covariance.max())
    asked, _ = starts["opq"].lesson(list(range(5)) * 8, 9)
    inverse = np.linalg.inv((1 - 1e-4) * covariance + 1e-4 * np.eye(1280))
    x = method._home.pipeline.features(asked).astype(np.float64)
    scores = np.stack([x @ inverse @ mean - mean @ inverse @ mean / 2 for mean in means], axis=1)
    best = np.argsort(-scores, axis=1)[:, 0].tolist()
    assert [answer[0] for answer in method.predict_many(asked)] == [method._home.labels[row] for row in best]


def test_exactly_so_in_double_precision(starts: dict[str, Start]) -> None:
    method = SLDA(starts["opq"].folder(), SLDASettings(), 0)
    rng = np.random.default_rng(0)
    three = {"totals": torch.zeros(3, 1280, dtype=torch.float64), "counts": torch.zeros(3, dtype=torch.int64)}
    method.load({**method.blank(), **three})
    z, rows = rng.normal(3, 1, (50, 1280)), rng.integers(0, 3, 50)
    for some in (slice(0, 1), slice(1, 30), slice(30, 50)):
        method.take(z[some], rows[some])
    means, covariance = batch_definition(z, rows)
    np.testing.assert_allclose(method.means(), means, rtol=1e-12)
    np.testing.assert_allclose(method.covariance(), covariance, rtol=1e-9, atol=1e-12)


def test_scikit_learn_agrees_where_the_two_coincide(starts: dict[str, Start]) -> None:
    """Classes of one size, and its shrinkage, which is towards the mean variance, brought to ours."""
    shrinkage = 0.01
    method = SLDA(starts["opq"].folder(), SLDASettings(shrinkage=shrinkage), 0)
    codes, labels = starts["opq"].lesson([0, 1, 2, 3] * 10)
    method.learn_many(codes, labels)
    features = method._home.pipeline.features
    ratio = shrinkage / (1 - shrinkage) / (np.trace(method.covariance()) / 1280)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=ratio / (1 + ratio))
    reference.fit(features(codes).astype(np.float64), labels)
    weights, offsets = method.discriminant()
    factor = (1 - shrinkage) * (1 + ratio)
    np.testing.assert_allclose(weights.T * factor, reference.coef_, atol=1e-4 * np.abs(reference.coef_).max())
    np.testing.assert_allclose(-offsets * factor + np.log(1 / 4), reference.intercept_, rtol=1e-4)
    asked, _ = starts["opq"].lesson([0, 1, 2, 3] * 10, 9)
    expected = reference.predict(features(asked).astype(np.float64)).tolist()
    assert [answer[0] for answer in method.predict_many(asked)] == expected


def test_base_samples_are_counted_in_through_their_codes(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    base, more = some.lesson([0, 1, 0, 1, 2], 1), some.lesson([2, 0])
    folder = some.folder(base)
    method = SLDA(folder, SLDASettings(), 0)
    method.learn_many(*more)
    z = np.concatenate([method._home.pipeline.features(codes) for codes, _ in (base, more)]).astype(np.float64)
    means, covariance = batch_definition(z, np.array([0, 1, 0, 1, 2, 2, 0]))
    np.testing.assert_allclose(method.means(), means, atol=1e-5)
    np.testing.assert_allclose(method.covariance(), covariance, atol=1e-5 * covariance.max())
    assert method.resources().flops["wake"] == pytest.approx(
        2 * (method._home.counter._flops.bottom + method._home.counter._flops.encode)
        + 2 * (method._home.counter._flops.decode + method._home.counter._flops.top)
        + 2 * 2 * 1280**2
    )


def test_the_covariance_counts_among_the_means(starts: dict[str, Start]) -> None:
    method = SLDA(starts["opq"].folder(), SLDASettings(), 0)
    method.learn_many(*starts["opq"].lesson([0, 1, 1]))
    assert method.resources().bytes["means"] == 2 * (1280 * 8 + 8) + 8 * 1280**2
