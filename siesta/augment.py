"""Mixup and CutMix on latents: two batches in, one mixed batch out, and the share that the first has in it.

The loss of a mixed batch is share * CE(labels of the first) + (1 - share) * CE(labels of the second). Like the
policies, this does without loading torch until it is used, so that help is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from siesta.contracts import Augmentation
from siesta.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AUGMENTATIONS", "cutmix", "explain_augmentations", "make_augmentation", "mixup", "mixup_cutmix"]

_ALPHA, _BETA, _CUTMIX_CHANCE = 0.1, 1.0, 0.6  # the paper's, section on implementation details


def mixup(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Weighs two batches (Zhang et al. 2018; on latents Verma et al. 2019).

    The share is drawn from Beta(0.1, 0.1), once a batch: mostly close to 0 or 1.

    Args:
        first: Latents, (B, d, r, s).
        second: Latents, (B, d, r, s).
        rng: Where the share comes from.

    Returns:
        Mixed latents, (B, d, r, s), and the share of `first` in them.
    """
    share = float(rng.beta(_ALPHA, _ALPHA))
    return share * first + (1 - share) * second, share


def cutmix(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Pastes a box of one batch into another (Yun et al. 2019).

    The share is drawn from Beta(1, 1), once a batch. The box has its area, up to whole cells of the r x s grid, and a
    random centre; it is cut at the edges, and the share that is returned is what really remained of `first`.

    Args:
        first: Latents, (B, d, r, s).
        second: Latents, (B, d, r, s).
        rng: Where share and centre come from.

    Returns:
        Mixed latents, (B, d, r, s), and the share of `first` in them.
    """
    rows, columns = first.shape[2:]
    side = float(np.sqrt(1 - rng.beta(_BETA, _BETA)))  # of the box, as a share of the grid's
    high, wide = _stretch(rows, side, rng), _stretch(columns, side, rng)
    mixed = first.clone()
    mixed[:, :, high, wide] = second[:, :, high, wide]
    covered = (high.stop - high.start) * (wide.stop - wide.start)
    return mixed, 1 - covered / (rows * columns)


def _stretch(cells: int, side: float, rng: np.random.Generator) -> slice:
    """`side` of the cells of a row or column, around a random one, cut at its ends."""
    length = int(cells * side)
    start = int(rng.integers(cells)) - length // 2
    return slice(max(start, 0), min(start + length, cells))


def mixup_cutmix(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """CutMix with probability 0.6, otherwise mixup: the paper's augmented sleep."""
    mix = cutmix if rng.random() < _CUTMIX_CHANCE else mixup
    return mix(first, second, rng)


AUGMENTATIONS: Mapping[str, Augmentation] = {"mixup": mixup, "cutmix": cutmix, "mixup_cutmix": mixup_cutmix}


def explain_augmentations() -> str:
    """One line an augmentation: its name and what it does."""
    return "; ".join(
        f"{name}: {(mix.__doc__ or '').splitlines()[0].rstrip('.')}" for name, mix in AUGMENTATIONS.items()
    )


def make_augmentation(augment: str | Augmentation | None) -> Augmentation | None:
    """An augmentation by its name; a function of your own, or None, is taken as it is."""
    if not isinstance(augment, str):
        return augment
    if augment not in AUGMENTATIONS:
        raise BadInput(f"there is no augmentation '{augment}': choose one of {', '.join(AUGMENTATIONS)}")
    return AUGMENTATIONS[augment]
