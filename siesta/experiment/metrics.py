"""Accuracy and what follows from it, from stored predictions alone. All in percent; docs/measures.md defines each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["NONE", "Predictions", "Spread", "Step", "Summary", "alpha", "forgetting", "mu", "spread", "summary"]

NONE = -1
"""In `top`: no further class was known."""


@dataclass(frozen=True)
class Predictions:
    """The best classes for some test samples, and the right ones.

    Attributes:
        top: Class indices, best first, `NONE` where fewer classes were known, (n, k).
        truth: Class index of each sample, (n,).

    Example:
        >>> answers = Predictions(np.array([[3, 1], [1, 3], [3, -1]]), np.array([3, 3, 1]))
        >>> round(answers.accuracy(1), 1), round(answers.accuracy(2), 1)
        (33.3, 66.7)
    """

    top: npt.NDArray[np.integer]
    truth: npt.NDArray[np.integer]

    def __post_init__(self) -> None:
        if self.top.ndim != 2 or self.truth.shape != self.top.shape[:1] or not len(self.truth):
            raise BadInput(
                f"predictions {self.top.shape} do not go with answers {self.truth.shape}: give (n, k) and (n,), n > 0"
            )
        if self.truth.min() < 0:
            raise BadInput("the right class of a test sample is never negative: mend the stored predictions")

    def correct(self, k: int) -> npt.NDArray[np.bool_]:
        """Whether the right class is among the best `k`, (n,)."""
        if not 1 <= k <= self.top.shape[1]:
            raise BadInput(f"the best {self.top.shape[1]} classes are stored: ask for 1 to that many, not {k}")
        return np.asarray((self.top[:, :k] == self.truth[:, None]).any(axis=1))

    def accuracy(self, k: int) -> float:
        """Top-k accuracy over all samples."""
        return 100 * float(self.correct(k).mean())

    def per_class(self, k: int) -> dict[int, float]:
        """Top-k accuracy over the samples of each class that has any."""
        return self.per_group({int(some): int(some) for some in np.unique(self.truth)}, k)

    def per_group(self, group_of: Mapping[int, int], k: int) -> dict[int, float]:
        """The same over the samples of each group of classes, such as those that came in one step."""
        groups = np.array([group_of[int(some)] for some in self.truth])
        correct = self.correct(k)
        return {int(group): 100 * float(correct[groups == group].mean()) for group in np.unique(groups)}

    def old_and_new(self, new: Iterable[int], k: int) -> tuple[float | None, float | None]:
        """Accuracy over the samples of old classes and over those of `new` ones; None where there are none."""
        is_new, correct = np.isin(self.truth, list(new)), self.correct(k)
        old, fresh = (100 * float(correct[some].mean()) if some.any() else None for some in (~is_new, is_new))
        return old, fresh


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n - 1 below the line; None of a single value)."""

    mean: float
    std: float | None
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.std is None else f"{self.mean:.2f}±{self.std:.2f}"


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation, over seeds, orders or sleeps.

    Example:
        >>> print(spread([1.0, 2.0, 3.0]))
        2.00±1.00
    """
    if not values:
        raise BadInput("there is no mean of nothing: give at least one value")
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(math.fsum(values) / len(values), std, len(values))


def mu(accuracies: Sequence[float]) -> float:
    """Mean over all steps, the base step included, of the accuracy after sleep on all classes seen so far."""
    return spread(accuracies).mean


def alpha(accuracies: Sequence[float], *, offline: bool = False) -> float:
    """The last accuracy; for an offline learner, whose steps are epochs, the best one."""
    if not accuracies:
        raise BadInput("there is no final accuracy of nothing: give at least one value")
    return max(accuracies) if offline else accuracies[-1]


def forgetting(history: Sequence[Mapping[int, float]]) -> float | None:
    """How much of its best each old class lost (Chaudhry et al. 2018), on average; below zero if they gained.

    Args:
        history: Accuracy of each class (or group of classes) after each step. Those first seen in the last step have
            no past and do not count.

    Returns:
        The mean over old classes of (best accuracy at an earlier step - accuracy at the last); None without any.
    """
    best: dict[int, float] = {}
    for accuracies in history[:-1]:
        for key, value in accuracies.items():
            best[key] = max(value, best.get(key, value))
    if not best:
        return None
    return math.fsum(value - history[-1][key] for key, value in best.items()) / len(best)


@dataclass(frozen=True)
class Step:
    """What was predicted at the end of a step.

    Attributes:
        after: After the sleep, on all classes seen so far.
        new: Classes first seen in this step.
        before: Before the sleep; None at the base step, and of methods that do not sleep.
    """

    after: Predictions
    new: frozenset[int]
    before: Predictions | None = None


@dataclass(frozen=True)
class Summary:
    """All that one run's predictions say, for one k.

    Attributes:
        mu: Mean accuracy over all steps.
        alpha: Final accuracy, or the best of an offline learner.
        after: Accuracy after each sleep.
        before: Accuracy before it, None where nothing was measured.
        gain: after - before, over the steps that have both.
        old: Accuracy on classes of earlier steps, after each step.
        new: Accuracy on classes new in the step, after each step.
        per_class: After the last step.
        forgetting: Mean over classes; None with a single step.
        forgetting_of_steps: Mean over groups of classes that came together, Chaudhry's tasks.
    """

    mu: float
    alpha: float
    after: list[float]
    before: list[float | None]
    gain: Spread | None
    old: list[float | None]
    new: list[float | None]
    per_class: dict[int, float]
    forgetting: float | None
    forgetting_of_steps: float | None


def summary(steps: Sequence[Step], k: int, *, offline: bool = False) -> Summary:
    """Everything at once, from the predictions of a run in order."""
    after = [step.after.accuracy(k) for step in steps]
    before = [None if step.before is None else step.before.accuracy(k) for step in steps]
    gains = [late - early for late, early in zip(after, before, strict=True) if early is not None]
    sides = [step.after.old_and_new(step.new, k) for step in steps]
    came = {some: number for number, step in reversed(list(enumerate(steps))) for some in step.new}
    return Summary(
        mu=mu(after),
        alpha=alpha(after, offline=offline),
        after=after,
        before=before,
        gain=spread(gains) if gains else None,
        old=[old for old, _ in sides],
        new=[new for _, new in sides],
        per_class=steps[-1].after.per_class(k),
        forgetting=forgetting([step.after.per_class(k) for step in steps]),
        forgetting_of_steps=forgetting([step.after.per_group(came, k) for step in steps]),
    )
