"""Mixup and CutMix on latents, against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from siesta.errors import BadInput
from siesta.sleep.augment import AUGMENTATIONS, cutmix, explain_augmentations, make_augmentation, mixup, mixup_cutmix

RNG = np.random.default_rng


def two(rows: int = 4, columns: int = 4, size: int = 3) -> tuple[Tensor, Tensor]:
    numbers = torch.rand(2, size, 5, rows, columns, generator=torch.Generator().manual_seed(1))
    return numbers[0], numbers[1]


@pytest.mark.parametrize("seed", range(5))
def test_mixup_is_the_weighted_mean(seed: int) -> None:
    first, second = two()
    mixed, share = mixup(first, second, RNG(seed))
    assert share == RNG(seed).beta(0.1, 0.1)
    assert mixed.numpy() == pytest.approx(share * first.numpy() + (1 - share) * second.numpy(), abs=1e-6)


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 14), columns=st.integers(1, 14))
def test_cutmix_pastes_one_box_and_returns_its_exact_area(seed: int, rows: int, columns: int) -> None:
    first, second = torch.zeros(2, 3, rows, columns), torch.ones(2, 3, rows, columns)
    mixed, share = cutmix(first, second, RNG(seed))
    assert mixed.numpy().mean() == pytest.approx(1 - share, abs=1e-6)
    pasted = mixed[0, 0].numpy()
    assert (mixed.numpy() == pasted).all(), "the same box in every sample and channel"
    high, wide = pasted.any(axis=1), pasted.any(axis=0)
    assert (pasted == np.outer(high, wide)).all()
    assert all(np.abs(np.diff(edge.astype(int), prepend=0)).sum() <= 2 for edge in (high, wide)), "one interval"


def test_cutmix_leaves_the_rest_unchanged() -> None:
    first, second = two(rows=7, columns=7)
    mixed, _ = cutmix(first, second, RNG(3))
    assert ((mixed == first) | (mixed == second)).all() and not torch.equal(mixed, first)


@given(seed=st.integers(0, 10_000), side=st.integers(1, 14), class_token=st.booleans())
def test_cutmix_of_tokens_cuts_the_same_box_in_the_grid_of_patches(seed: int, side: int, class_token: bool) -> None:
    assume(side > 1 or class_token)  # a single token has no patches
    maps = torch.rand(2, 3, 4, side, side, generator=torch.Generator().manual_seed(seed))
    tokens = maps.flatten(3).transpose(2, 3)  # (2, B, side * side, d)
    extra = torch.rand(2, 3, int(class_token), 4, generator=torch.Generator().manual_seed(seed))
    first, second = torch.cat([extra, tokens], dim=2)
    mixed, share = cutmix(first, second, RNG(seed))
    expected, expected_share = cutmix(maps[0], maps[1], RNG(seed))
    assert share == expected_share
    assert torch.equal(mixed[:, int(class_token) :], expected.flatten(2).transpose(1, 2))
    torch.testing.assert_close(mixed[:, : int(class_token)], share * extra[0] + (1 - share) * extra[1])


def test_a_single_token_is_averaged() -> None:
    first, second = torch.rand(2, 3, 1, 4)
    for mix in (cutmix, mixup):
        mixed, share = mix(first, second, RNG(0))
        assert 0 < share < 1
        torch.testing.assert_close(mixed, share * first + (1 - share) * second)


def test_cutmix_refuses_tokens_that_are_no_grid() -> None:
    tokens = torch.rand(2, 3, 7, 4)
    with pytest.raises(BadInput, match="cutmix needs tokens on a square grid, after at most one class token, not 7"):
        cutmix(tokens[0], tokens[1], RNG(0))
    assert mixup(tokens[0], tokens[1], RNG(0))[0].shape == (3, 7, 4)


def test_shares_are_distributed_as_published() -> None:
    """Mixup: Beta(0.1, 0.1), so mostly next to 0 or 1. CutMix: of 14 x 14, about uniform before the edges cut."""
    first, second = two(rows=14, columns=14, size=1)
    rng = RNG(0)
    mixups = np.array([mixup(first, second, rng)[1] for _ in range(2000)])
    assert mixups.mean() == pytest.approx(0.5, abs=0.04)
    assert mixups.var() == pytest.approx(0.25 / 1.2, abs=0.01), "variance of a Beta(a, a): 1 / (4 (2 a + 1))"
    cuts = np.array([cutmix(first, second, rng)[1] for _ in range(2000)])
    assert 0.65 < cuts.mean() < 0.75, "cut at the edges, more of the first stays"
    assert cuts.min() < 0.2 and cuts.max() == 1


def test_the_papers_mixture_cuts_in_six_of_ten_steps() -> None:
    first, second = torch.zeros(1, 1, 14, 14), torch.ones(1, 1, 14, 14)
    rng = RNG(0)
    mixed = [mixup_cutmix(first, second, rng)[0] for _ in range(2000)]
    boxes = np.mean([float(((one == 0) | (one == 1)).all()) for one in mixed])
    exact = np.mean([share in (0.0, 1.0) for share in RNG(1).beta(0.1, 0.1, 5000)])  # mixups that look like a cut
    assert boxes == pytest.approx(0.6 + 0.4 * exact, abs=0.05)


@pytest.mark.parametrize("latents", ["maps", "tokens"])
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_every_augmentation_keeps_shapes_and_inputs_and_follows_its_seed(name: str, latents: str) -> None:
    first, second = two() if latents == "maps" else torch.rand(2, 3, 17, 5)
    copies = first.clone(), second.clone()
    (mixed, share), (again, same) = (AUGMENTATIONS[name](first, second, RNG(5)) for _ in range(2))
    assert mixed.shape == first.shape and 0 <= share <= 1 and share == same and torch.equal(mixed, again)
    assert torch.equal(first, copies[0]) and torch.equal(second, copies[1])


def test_augmentations_are_made_by_name_or_given_as_functions() -> None:
    assert make_augmentation(None) is None and make_augmentation(mixup) is mixup
    for name, mix in AUGMENTATIONS.items():
        assert make_augmentation(name) is mix and name in explain_augmentations()
    with pytest.raises(BadInput, match="there is no augmentation 'blur': choose one of mixup, cutmix, mixup_cutmix"):
        make_augmentation("blur")
