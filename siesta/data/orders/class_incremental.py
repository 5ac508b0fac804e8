"""Classes one after the other: the hardest order, and the paper's main one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, by_class
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput

__all__ = ["class_incremental", "classes_of_steps"]

_CLASSES, _SAMPLES, _STEP = 10, 11, 12  # purposes of random orders


def class_incremental(
    dataset: Dataset,
    seed: int,
    *,
    classes_per_step: int,
    base_classes: int = 0,
    shuffle_classes: bool = False,
    shuffle_step: bool = False,
) -> Stream:
    """Classes come one after the other, each one's pictures shuffled ("shuffled within each class", section 5).

    Args:
        dataset: Whose pictures come.
        seed: Whose shuffles they are.
        classes_per_step: Classes of a step; the last may have fewer.
        base_classes: Classes of a base step that comes first; 0 is none.
        shuffle_classes: Classes come in the seed's order instead of the dataset's, those of the base step, too.
        shuffle_step: A step's pictures are shuffled over all of its classes.
    """
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)
    own = list(by_class(dataset.train.labels, len(dataset.classes)))
    steps = [np.concatenate([shuffled(own[c], seed, _SAMPLES, int(c)) for c in group]) for group in groups]
    if shuffle_step:
        steps = [shuffled(step, seed, _STEP, number) for number, step in enumerate(steps)]
    return Stream.of_steps(dataset, steps, base=base_classes > 0 and len(steps[0]) > 0)


def classes_of_steps(
    dataset: Dataset, seed: int, classes_per_step: int, base_classes: int, shuffle_classes: bool
) -> list[npt.NDArray[np.int64]]:
    """The classes of each step, the base step's first if there is one."""
    count = len(dataset.classes)
    if classes_per_step < 1:
        raise BadInput(f"classes_per_step is 1 or more, not {classes_per_step}")
    if not 0 <= base_classes <= count:
        raise BadInput(f"base_classes is 0 to {count}, the classes of {dataset.name}, not {base_classes}")
    order = np.arange(count)
    if shuffle_classes:
        order = shuffled(order, seed, _CLASSES)
    starts = np.arange(base_classes, count, classes_per_step)
    return [group for group in np.split(order, starts) if len(group)]
