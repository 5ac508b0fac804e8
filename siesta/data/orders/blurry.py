"""Classes that come back: steps have classes of their own, and some pictures of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, by_class
from siesta.data.orders.class_incremental import classes_of_steps
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput

__all__ = ["blurry", "revisiting"]

_CLASSES, _LEAVERS, _PLACES, _STEP = 30, 31, 32, 33  # purposes of random orders

Groups = Sequence[npt.NDArray[np.int64]]
Elsewhere = Callable[[int], list[int]]
"""Step -> steps that its leavers may go to."""


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
    """Some classes keep to their step; of the others, a share of the pictures comes in other steps.

    The i-Blurry set-up of Koh et al. (2022) with N = 100 `disjoint` and M = 100 `level`. Each step has its own classes
    as in `class_incremental`. `disjoint` of a step's classes have all of their pictures there. Of each other class a
    random `level` of the pictures, but never all, is dealt out evenly to the other steps, earlier ones too. Nothing
    goes into the base step. A step's pictures are shuffled.

    Args:
        dataset: Whose pictures come.
        seed: Whose choices they are.
        classes_per_step: Classes of a step; the last may have fewer.
        base_classes: Classes of a base step that comes first; 0 is none.
        shuffle_classes: Classes come in the seed's order instead of the dataset's.
        disjoint: Share of each step's classes that never leave it.
        level: Share of the pictures of the other classes that leave their step.
    """
    _check_share("disjoint", disjoint)
    _check_share("level", level)
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)
    chosen = [shuffled(group, seed, _CLASSES, n)[round(disjoint * len(group)) :] for n, group in enumerate(groups)]
    first = 1 if base_classes else 0
    return _spread(
        dataset,
        seed,
        groups,
        chosen,
        level,
        lambda home: [s for s in range(first, len(groups)) if s != home],
        first > 0,
    )


def revisiting(
    dataset: Dataset,
    seed: int,
    *,
    classes_per_step: int,
    base_classes: int = 0,
    shuffle_classes: bool = False,
    share: float = 0.1,
) -> Stream:
    """Every class has its step, and a share of its pictures comes back in later ones.

    Each step has its own classes as in `class_incremental`. Of each class a random `share` of the pictures, but never
    all, is dealt out evenly to the steps after its own. A step's pictures are shuffled.

    Args:
        dataset: Whose pictures come.
        seed: Whose choices they are.
        classes_per_step: Classes of a step; the last may have fewer.
        base_classes: Classes of a base step that comes first; they come back, too. 0 is none.
        shuffle_classes: Classes come in the seed's order instead of the dataset's.
        share: Part of each class that comes later.
    """
    _check_share("share", share)
    groups = classes_of_steps(dataset, seed, classes_per_step, base_classes, shuffle_classes)
    later = range(len(groups))
    return _spread(dataset, seed, groups, groups, share, lambda home: list(later[home + 1 :]), base_classes > 0)


def _spread(
    dataset: Dataset, seed: int, groups: Groups, chosen: Groups, share: float, elsewhere: Elsewhere, base: bool
) -> Stream:
    """Deals out a share of the chosen classes' pictures, then shuffles each step."""
    own = list(by_class(dataset.train.labels, len(dataset.classes)))
    step_of = np.empty(len(dataset.train), dtype=np.int64)
    for home, group in enumerate(groups):
        for label in map(int, group):
            step_of[own[label]] = home
        places = elsewhere(home)
        for label in map(int, chosen[home]) if places else ():
            leavers = shuffled(own[label], seed, _LEAVERS, label)[: _leaving(share, len(own[label]))]
            step_of[leavers] = np.resize(shuffled(np.array(places), seed, _PLACES, label), len(leavers))
    steps = [shuffled(np.flatnonzero(step_of == number), seed, _STEP, number) for number in range(len(groups))]
    return Stream.of_steps(dataset, steps, base=base and len(steps[0]) > 0)


def _leaving(share: float, count: int) -> int:
    return min(round(share * count), max(count - 1, 0))


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadInput(f"{name} is a share from 0 to 1, not {value}")
