"""The batch of a training step: mixed pairs, and the class that their features count for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from siesta.errors import BadInput
from siesta.sleep.batch import Batch, id_batches

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
    assert batch.rows.tolist() == ROWS[firsts].tolist() and batch.second_rows.tolist() == ROWS[seconds].tolist()


def test_without_augmentation_nothing_is_mixed() -> None:
    batch = Batch.of(LATENTS, ROWS, None, RNG)
    assert batch.latents is LATENTS and batch.share == 1 and torch.equal(batch.rows, batch.second_rows)


@pytest.mark.parametrize(("share", "expected"), [(1.0, [0]), (0.96, [0]), (0.9, None), (0.5, None), (0.03, [1])])
def test_features_of_a_mixture_count_for_the_dominant_part(share: float, expected: list[int] | None) -> None:
    rows = Batch(LATENTS[:1], torch.tensor([0]), torch.tensor([1]), share).dominant_rows()
    assert (None if rows is None else rows.tolist()) == expected


def test_an_augmentation_of_the_wrong_shape_or_share_is_refused() -> None:
    for augment, words in (
        (lambda first, _second, _rng: (first[:1], 0.5), r"not shape \(1, 2, 3, 3\) and 0\.5"),
        (lambda first, _second, _rng: (first, 1.5), r"a share in 0\.\.1, not shape \(3, 2, 3, 3\) and 1\.5"),
    ):
        with pytest.raises(BadInput, match=words):
            Batch.of(LATENTS, ROWS, augment, RNG)


@pytest.mark.parametrize("total", [1, 5, 6, 13])
def test_batches_contain_every_id_in_order(total: int) -> None:
    sample_ids = iter([np.arange(4), np.arange(4, 5), np.arange(5, 20)])
    cut = list(id_batches(sample_ids, 6, total))
    assert [len(batch) for batch in cut[:-1]] == [6] * (len(cut) - 1)
    assert np.concatenate(cut).tolist() == list(range(total))


def test_a_policy_that_ends_too_early_is_an_error() -> None:
    with pytest.raises(BadInput, match="the policy ended before the budget was spent"):
        list(id_batches(iter([np.arange(5)]), 4, 40))
