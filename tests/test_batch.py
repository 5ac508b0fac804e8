"""What a step learns from: pairs, their loss, and whose features they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from siesta.batch import Batch

RNG = np.random.default_rng(0)
LATENTS = torch.arange(6.0)[:, None, None, None].expand(6, 2, 3, 3)
ROWS = torch.tensor([0, 1, 2, 2, 1, 0])


def a_quarter(first: Tensor, second: Tensor, _rng: np.random.Generator) -> tuple[Tensor, float]:
    return 0.25 * first + 0.75 * second, 0.25


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_the_first_half_is_mixed_with_the_second(size: int) -> None:
    batch = Batch.of(LATENTS[:size], ROWS[:size], a_quarter, RNG)
    half = -(-size // 2)
    firsts, seconds = np.arange(half), np.arange(size - half, size)
    assert batch.latents[:, 0, 0, 0].tolist() == (0.25 * firsts + 0.75 * seconds).tolist()
    assert batch.rows.tolist() == ROWS[firsts].tolist() and batch.others.tolist() == ROWS[seconds].tolist()


def test_the_loss_weighs_both_labels() -> None:
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    found = Batch(LATENTS[:3], torch.tensor([0, 1, 2]), torch.tensor([3, 3, 0]), 0.3).loss(logits)
    logs = logits.numpy() - np.log(np.exp(logits.numpy()).sum(axis=1, keepdims=True))
    expected = -np.mean(0.3 * logs[[0, 1, 2], [0, 1, 2]] + 0.7 * logs[[0, 1, 2], [3, 3, 0]])
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_without_augmentation_it_is_plain_cross_entropy() -> None:
    batch = Batch.of(LATENTS, ROWS, None, RNG)
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    assert batch.latents is LATENTS and torch.equal(batch.loss(logits), torch.nn.functional.cross_entropy(logits, ROWS))


@pytest.mark.parametrize(("share", "whose"), [(1.0, [0]), (0.96, [0]), (0.9, None), (0.5, None), (0.03, [1])])
def test_features_of_a_mixture_belong_to_whom_it_is_almost_made_of(share: float, whose: list[int] | None) -> None:
    rows = Batch(LATENTS[:1], torch.tensor([0]), torch.tensor([1]), share).pure_rows()
    assert (None if rows is None else rows.tolist()) == whose
