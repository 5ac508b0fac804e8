"""Class-incremental order: one class after the other, the paper's main setting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, indices_by_class
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput
from siesta.rng import Purpose

__all__ = ["class_incremental", "classes_of_steps"]


def class_incremental(
    dataset: Dataset,
    seed: int,
    *,
    classes_per_step: int,
    base_classes: int = 0,
    shuffle_classes: bool = False,
    shuffle_step: bool = False,
) -> Stream:
    """Return a stream of one class after the other, images shuffled within each class (section 5).

    Args:
        dataset: The data set.
        seed: Determines all random choices.
        classes_per_step: Classes in a step; the last step may have fewer.
        base_classes: Classes in a base step that comes first; 0 for no base step.
        shuffle_classes: Shuffle the order of classes instead of taking the data set's, base classes included.
        shuffle_step: Shuffle the images of a step over all of its classes.
    """
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)
    by_class = list(indices_by_class(dataset.train.labels, len(dataset.classes)))
    steps = [
        np.concatenate([shuffled(by_class[label], seed, Purpose.CLASS_SAMPLES, int(label)) for label in group])
        for group in groups
    ]
    if shuffle_step:
        steps = [shuffled(step, seed, Purpose.STEP_SAMPLES, number) for number, step in enumerate(steps)]
    return Stream.from_steps(dataset, steps, base=base_classes > 0 and len(steps[0]) > 0)


def classes_of_steps(
    dataset: Dataset, seed: int, classes_per_step: int, base_classes: int, shuffle_classes: bool
) -> list[npt.NDArray[np.int64]]:
    """Return the classes of each step; the base step, if there is one, is the first."""
    count = len(dataset.classes)
    if classes_per_step < 1:
        raise BadInput(f"classes_per_step must be 1 or more, not {classes_per_step}")
    if not 0 <= base_classes <= count:
        raise BadInput(
            f"base_classes must be in 0..{count}, the number of classes of {dataset.name}, not {base_classes}"
        )
    order = np.arange(count)
    if shuffle_classes:
        order = shuffled(order, seed, Purpose.CLASS_ORDER)
    starts = np.arange(base_classes, count, classes_per_step)
    return [group for group in np.split(order, starts) if len(group)]
