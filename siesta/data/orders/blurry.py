"""Orders in which classes return: each step has its own classes and some images of other classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, indices_by_class
from siesta.data.orders.class_incremental import classes_of_steps
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput
from siesta.rng import Purpose

__all__ = ["blurry", "revisiting"]


ClassGroups = Sequence[npt.NDArray[np.int64]]
TargetSteps = Callable[[int], list[int]]
"""Maps a step to the steps that its images may move to."""


def blurry(
    dataset: Dataset,
    seed: int,
    *,
    classes_per_step: int,
    base_classes: int = 0,
    shuffle_classes: bool = False,
    disjoint: float = 0.5,
    level: float = 0.1,
) -> Stream:
    """Some classes stay in their step; of each other class, some images come in other steps.

    The i-Blurry set-up of Koh et al. (2022) with N = 100 `disjoint` and M = 100 `level`. Each step has its own classes
    as in `class_incremental`. A fraction `disjoint` of them has all of its images there. Of each other class, a
    random fraction `level` of the images, but never all, is distributed evenly over the other steps, earlier ones
    included. No image moves to the base step. The images of a step are shuffled.

    Args:
        dataset: The data set.
        seed: Determines all random choices.
        classes_per_step: Classes in a step; the last step may have fewer.
        base_classes: Classes in a base step that comes first; 0 for no base step.
        shuffle_classes: Shuffle the order of classes instead of taking the data set's.
        disjoint: Fraction of each step's classes whose images all stay in it.
        level: Fraction of the images of each other class that move to other steps.
    """
    _check_share("disjoint", disjoint)
    _check_share("level", level)
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)
    moving = [
        shuffled(group, seed, Purpose.BLURRY_CLASSES, n)[round(disjoint * len(group)) :]
        for n, group in enumerate(groups)
    ]
    first = 1 if base_classes else 0

    def other_steps(step: int) -> list[int]:
        return [other for other in range(first, len(groups)) if other != step]

    return _move_pictures(dataset, seed, groups, moving, level, other_steps, base=first > 0)


def revisiting(
    dataset: Dataset,
    seed: int,
    *,
    classes_per_step: int,
    base_classes: int = 0,
    shuffle_classes: bool = False,
    share: float = 0.1,
) -> Stream:
    """Every class has its step, and some of its images come in later steps.

    Each step has its own classes as in `class_incremental`. Of each class, a random fraction `share` of the
    images, but never all, is distributed evenly over the steps after its own. The images of a step are shuffled.

    Args:
        dataset: The data set.
        seed: Determines all random choices.
        classes_per_step: Classes in a step; the last step may have fewer.
        base_classes: Classes of a base step that comes first; they return, too. 0 for no base step.
        shuffle_classes: Shuffle the order of classes instead of taking the data set's.
        share: Fraction of each class that comes in later steps.
    """
    _check_share("share", share)
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)

    def later_steps(step: int) -> list[int]:
        return list(range(step + 1, len(groups)))

    return _move_pictures(dataset, seed, groups, groups, share, later_steps, base=base_classes > 0)


def _move_pictures(
    dataset: Dataset,
    seed: int,
    groups: ClassGroups,
    moving: ClassGroups,
    share: float,
    target_steps: TargetSteps,
    *,
    base: bool,
) -> Stream:
    """Move a share of the images of the `moving` classes of each step to other steps, then shuffle each step."""
    by_class = list(indices_by_class(dataset.train.labels, len(dataset.classes)))
    step_of = np.empty(len(dataset.train), dtype=np.int64)
    for step, group in enumerate(groups):
        for label in map(int, group):
            step_of[by_class[label]] = step
        targets = target_steps(step)
        for label in map(int, moving[step]) if targets else ():
            count = _moved_count(share, len(by_class[label]))
            moved = shuffled(by_class[label], seed, Purpose.BLURRY_LEAVERS, label)[:count]
            step_of[moved] = np.resize(shuffled(np.array(targets), seed, Purpose.BLURRY_PLACES, label), len(moved))
    steps = [
        shuffled(np.flatnonzero(step_of == number), seed, Purpose.BLURRY_STEP, number) for number in range(len(groups))
    ]
    return Stream.from_steps(dataset, steps, base=base and len(steps[0]) > 0)


def _moved_count(share: float, count: int) -> int:
    return min(round(share * count), max(count - 1, 0))


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadInput(f"{name} must be in 0..1, not {value}")
