"""An order of independent, identically distributed samples: all images shuffled."""

from __future__ import annotations

import numpy as np

from siesta.data.dataset import Dataset
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput
from siesta.rng import Purpose

__all__ = ["iid"]


def iid(dataset: Dataset, seed: int, *, steps: int, base_classes: int = 0) -> Stream:
    """Return all images shuffled, in steps whose sizes differ by one image at most.

    Args:
        dataset: The data set.
        seed: Determines the order.
        steps: Number of steps, without the base step.
        base_classes: Classes in a base step that comes first, with all of their images; 0 for no base step.
    """
    labels = dataset.train.labels
    if not 0 <= base_classes < len(dataset.classes):
        most = len(dataset.classes) - 1
        raise BadInput(f"base_classes must be in 0..{most}, all classes of {dataset.name} but one, not {base_classes}")
    base = shuffled(np.flatnonzero(labels < base_classes), seed, Purpose.IID_BASE)
    rest = shuffled(np.flatnonzero(labels >= base_classes), seed, Purpose.IID_SAMPLES)
    if not 1 <= steps <= len(rest):
        raise BadInput(f"steps must be in 1..{len(rest)}, the number of images of {dataset.name}, not {steps}")
    return Stream.from_steps(dataset, [base, *np.array_split(rest, steps)], base=len(base) > 0)
