"""Mixup and CutMix on latents: they mix two batches into one and return the share of the first in it.

Tokens (N, d) are a square grid of patches, row by row, after at most one class token. CutMix cuts its box in that grid
and averages the class tokens, which belong to neither part, with the weights that the patches have. A single token, as
vectors are, has no patches, and is averaged like a class token.

The loss of a mixed batch is share * CE(labels of the first) + (1 - share) * CE(labels of the second). The module does
not import torch, so that the command line's help is quick.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from siesta.contracts import Augmentation
from siesta.errors import BadInput
from siesta.registry import Registry, function_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AUGMENTATIONS", "cutmix", "explain_augmentations", "make_augmentation", "mixup", "mixup_cutmix"]

# The paper's values, from its section on implementation details.
_MIXUP_ALPHA = 0.1
_CUTMIX_ALPHA = 1.0
_CUTMIX_PROBABILITY = 0.6


def mixup(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Average two batches with weights (Zhang et al. 2018; on latents Verma et al. 2019).

    The share is drawn from Beta(0.1, 0.1), once a batch: mostly close to 0 or 1.

    Args:
        first: Latents, (B, d, r, s) or (B, N, d).
        second: Latents of the same shape.
        rng: Draws the share.

    Returns:
        Mixed latents of that shape, and the share of `first` in them.
    """
    share = float(rng.beta(_MIXUP_ALPHA, _MIXUP_ALPHA))
    return share * first + (1 - share) * second, share


def cutmix(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Paste a box of one batch into another (Yun et al. 2019).

    The share is drawn from Beta(1, 1), once a batch. The box has the rest of the area, rounded to whole cells of the
    r x s grid, and a random centre. It is cut at the edges, and the share of the cells outside it is returned. Class
    tokens are averaged with that share.

    Args:
        first: Latents, (B, d, r, s) or (B, N, d).
        second: Latents of the same shape.
        rng: Draws share and centre.

    Returns:
        Mixed latents of that shape, and the share of `first` in them.
    """
    rows, columns = _grid(first)
    drawn = float(rng.beta(_CUTMIX_ALPHA, _CUTMIX_ALPHA))
    if not rows:
        return drawn * first + (1 - drawn) * second, drawn
    side = float(np.sqrt(1 - drawn))  # of the box, as a share of the grid's
    high = _interval(rows, side, rng)
    wide = _interval(columns, side, rng)
    covered = (high.stop - high.start) * (wide.stop - wide.start)
    share = 1 - covered / (rows * columns)
    if first.ndim == 4:
        mixed = first.clone()
        mixed[:, :, high, wide] = second[:, :, high, wide]
        return mixed, share
    patches = first.shape[1] - rows * columns + np.arange(rows * columns).reshape(rows, columns)
    mixed = share * first + (1 - share) * second  # stays so for a class token
    mixed[:, patches.ravel()] = first[:, patches.ravel()]
    mixed[:, patches[high, wide].ravel()] = second[:, patches[high, wide].ravel()]
    return mixed, share


def _grid(latents: Tensor) -> tuple[int, int]:
    """Return rows and columns of latents (B, d, r, s), or of the patches among tokens (B, N, d); 0 of one token."""
    if latents.ndim == 4:
        return latents.shape[2], latents.shape[3]
    tokens = latents.shape[1]
    if tokens == 1:
        return 0, 0
    side = math.isqrt(tokens)
    if tokens - side**2 not in (0, 1):
        raise BadInput(f"cutmix needs tokens on a square grid, after at most one class token, not {tokens}: use mixup")
    return side, side


def _interval(cells: int, side: float, rng: np.random.Generator) -> slice:
    """Return a random interval of `side` times `cells`, cut at the ends."""
    length = int(cells * side)
    start = int(rng.integers(cells)) - length // 2
    return slice(max(start, 0), min(start + length, cells))


def mixup_cutmix(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Apply CutMix with probability 0.6, otherwise mixup: the paper's augmented sleep."""
    mix = cutmix if rng.random() < _CUTMIX_PROBABILITY else mixup
    return mix(first, second, rng)


AUGMENTATIONS: Registry[Augmentation] = Registry(
    "augmentation",
    {"mixup": mixup, "cutmix": cutmix, "mixup_cutmix": mixup_cutmix},
    group="siesta.augmentations",
    requirement=function_of(3),
)


def explain_augmentations() -> str:
    """Return one line on each augmentation, for help texts."""
    return "; ".join(f"{name}: {summary}" for name, summary in AUGMENTATIONS.summaries().items())


def make_augmentation(augment: str | Augmentation | None) -> Augmentation | None:
    """Return the augmentation with this name; a function, or None, is returned as it is."""
    return None if augment is None else AUGMENTATIONS.resolve(augment)
