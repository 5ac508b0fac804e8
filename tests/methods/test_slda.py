"""SLDA against its definition in NumPy, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from siesta.methods.cost import Flops
from siesta.methods.slda import SLDA, SLDASettings
from tests.methods.conftest import Template
from tests.small import FEATURES

Floats = npt.NDArray[np.float64]


def batch_statistics(z: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the class means and the within-class covariance of a batch."""
    means = np.stack([z[rows == row].mean(axis=0) for row in range(rows.max() + 1)])
    residuals = z - means[rows]
    return means, residuals.T @ residuals / len(z)


@pytest.mark.parametrize("seed", range(3))
def test_streamed_statistics_equal_those_of_a_batch(templates: dict[str, Template], seed: int) -> None:
    method = SLDA(templates["opq"].folder(), SLDASettings(), 0)
    rng = np.random.default_rng(seed)
    codes, labels = templates["opq"].samples(rng.integers(0, 5, 70).tolist(), seed)
    method.learn_many(codes[:9], labels[:9])
    method.learn_many(codes[9:], labels[9:])
    z = method.workspace.pipeline.features(codes).astype(np.float64)
    rows = np.array([method.workspace.labels.index(label) for label in labels])
    means, covariance = batch_statistics(z, rows)
    # forward passes of different sizes round differently in float32
    np.testing.assert_allclose(method.means(), means, atol=1e-5)
    np.testing.assert_allclose(method.covariance(), covariance, atol=1e-5 * covariance.max())
    queries, _ = templates["opq"].samples(list(range(5)) * 8, 9)
    inverse = np.linalg.inv((1 - 1e-4) * covariance + 1e-4 * np.eye(FEATURES))
    z = method.workspace.pipeline.features(queries).astype(np.float64)
    scores = np.stack([z @ inverse @ mean - mean @ inverse @ mean / 2 for mean in means], axis=1)
    best = np.argsort(-scores, axis=1)[:, 0].tolist()
    assert [answer[0] for answer in method.predict_many(queries)] == [method.workspace.labels[row] for row in best]


def test_updates_are_exact_in_double_precision(templates: dict[str, Template]) -> None:
    method = SLDA(templates["opq"].folder(), SLDASettings(), 0)
    rng = np.random.default_rng(0)
    no_samples = {"totals": torch.zeros(3, FEATURES, dtype=torch.float64), "counts": torch.zeros(3, dtype=torch.int64)}
    method.load({**method.empty_state(), **no_samples})
    z, rows = rng.normal(3, 1, (50, FEATURES)), rng.integers(0, 3, 50)
    for part in (slice(0, 1), slice(1, 30), slice(30, 50)):
        method.update(z[part], rows[part])
    means, covariance = batch_statistics(z, rows)
    np.testing.assert_allclose(method.means(), means, rtol=1e-12)
    np.testing.assert_allclose(method.covariance(), covariance, rtol=1e-9, atol=1e-12)


def test_discriminant_equals_that_of_scikit_learn(templates: dict[str, Template]) -> None:
    """With classes of equal size, and its shrinkage towards the mean variance converted to ours."""
    shrinkage = 0.01
    method = SLDA(templates["opq"].folder(), SLDASettings(shrinkage=shrinkage), 0)
    codes, labels = templates["opq"].samples([0, 1, 2, 3] * 10)
    method.learn_many(codes, labels)
    features = method.workspace.pipeline.features
    ratio = shrinkage / (1 - shrinkage) / (np.trace(method.covariance()) / FEATURES)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=ratio / (1 + ratio))
    reference.fit(features(codes).astype(np.float64), labels)
    weights, offsets = method.discriminant()
    factor = (1 - shrinkage) * (1 + ratio)
    np.testing.assert_allclose(weights.T * factor, reference.coef_, atol=1e-4 * np.abs(reference.coef_).max())
    np.testing.assert_allclose(-offsets * factor + np.log(1 / 4), reference.intercept_, rtol=1e-4)
    queries, _ = templates["opq"].samples([0, 1, 2, 3] * 10, 9)
    expected = reference.predict(features(queries).astype(np.float64)).tolist()
    assert [answer[0] for answer in method.predict_many(queries)] == expected


def test_base_samples_count_but_cost_nothing(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    base, more = template.samples([0, 1, 0, 1, 2], 1), template.samples([2, 0])
    folder = template.folder(base)
    method = SLDA(folder, SLDASettings(), 0)
    method.learn_many(*more)
    z = np.concatenate([method.workspace.pipeline.features(codes) for codes, _ in (base, more)]).astype(np.float64)
    means, covariance = batch_statistics(z, np.array([0, 1, 0, 1, 2, 2, 0]))
    np.testing.assert_allclose(method.means(), means, atol=1e-5)
    np.testing.assert_allclose(method.covariance(), covariance, atol=1e-5 * covariance.max())
    pipeline = method.workspace.pipeline
    flops = Flops.measure(pipeline.backbone, pipeline.codec, pipeline.image_size, 1)
    image = flops.bottom + flops.encode + flops.decode + flops.top
    assert method.resources().flops["wake"] == pytest.approx(2 * (image + 2 * FEATURES**2))


def test_the_scatter_counts_among_the_bytes_of_means(templates: dict[str, Template]) -> None:
    method = SLDA(templates["opq"].folder(), SLDASettings(), 0)
    method.learn_many(*templates["opq"].samples([0, 1, 1]))
    assert method.resources().bytes["means"] == 2 * (FEATURES * 8 + 8) + 8 * FEATURES**2
