"""Everything shuffled: the kindest order."""

from __future__ import annotations

import numpy as np

from siesta.data.dataset import Dataset
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput

__all__ = ["iid"]

_SAMPLES, _BASE = 20, 21  # purposes of random orders


def iid(dataset: Dataset, seed: int, *, steps: int, base_classes: int = 0) -> Stream:
    """All pictures come shuffled, in steps of the same size up to one picture.

    Args:
        dataset: Whose pictures come.
        seed: Whose shuffle it is.
        steps: Steps, without the base step.
        base_classes: All pictures of that many classes, the dataset's first, come before as the base step.
    """
    labels = dataset.train.labels
    if not 0 <= base_classes < len(dataset.classes):
        raise BadInput(f"base_classes is 0 to below {len(dataset.classes)}, the classes of {dataset.name}")
    base = shuffled(np.flatnonzero(labels < base_classes), seed, _BASE)
    rest = shuffled(np.flatnonzero(labels >= base_classes), seed, _SAMPLES)
    if not 1 <= steps <= len(rest):
        raise BadInput(f"{len(rest)} pictures of {dataset.name} make 1 to {len(rest)} steps, not {steps}")
    return Stream.of_steps(dataset, [base, *np.array_split(rest, steps)], base=len(base) > 0)
