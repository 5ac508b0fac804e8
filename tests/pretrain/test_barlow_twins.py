"""Barlow Twins against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.pretrain.barlow_twins import barlow_loss


def test_the_loss_matches_numpy() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 20, 5))
    correlations = np.corrcoef(first, second, rowvar=False)[:5, 5:]
    expected = sum(
        (1 - correlations[i, j]) ** 2 if i == j else 0.01 * correlations[i, j] ** 2 for i in range(5) for j in range(5)
    )
    assert float(barlow_loss(torch.from_numpy(first), torch.from_numpy(second), 0.01)) == pytest.approx(
        expected, rel=1e-4
    )


def test_equal_embeddings_with_independent_dimensions_have_no_loss() -> None:
    signs = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert float(barlow_loss(signs, 3 * signs + 1, 1.0)) == pytest.approx(0, abs=1e-8)
    assert float(barlow_loss(signs, -signs, 1.0)) == pytest.approx(8, rel=1e-4)


def test_a_constant_dimension_has_finite_gradients() -> None:
    rows = torch.zeros(4, 2, requires_grad=True)
    barlow_loss(rows, rows, 0.01).backward()  # type: ignore[no-untyped-call]
    assert rows.grad is not None and bool(rows.grad.isfinite().all())
