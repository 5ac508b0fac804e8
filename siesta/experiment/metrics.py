"""Accuracy and derived measures, from stored predictions alone. All in percent; docs/measures.md defines each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = [
    "NO_CLASS",
    "MeanStd",
    "Predictions",
    "RunMetrics",
    "StepPredictions",
    "alpha",
    "forgetting",
    "mean_and_std",
    "mu",
    "run_metrics",
]

NO_CLASS = -1
"""Fills `Predictions.top` where the method knew fewer classes than were asked for."""


@dataclass(frozen=True)
class Predictions:
    """The best classes for some test samples, and their true classes.

    Attributes:
        top: Class indices, best first, `NO_CLASS` where fewer classes were known, (n, k).
        truth: Class index of each sample, (n,).

    Example:
        >>> predictions = Predictions(np.array([[3, 1], [1, 3], [3, -1]]), np.array([3, 3, 1]))
        >>> round(predictions.accuracy(1), 1), round(predictions.accuracy(2), 1)
        (33.3, 66.7)
    """

    top: npt.NDArray[np.integer]
    truth: npt.NDArray[np.integer]

    def __post_init__(self) -> None:
        if self.top.ndim != 2 or self.truth.shape != self.top.shape[:1] or not len(self.truth):
            raise BadInput(
                f"predictions of shape {self.top.shape} do not match classes of shape {self.truth.shape}: "
                "give (n, k) and (n,), n > 0"
            )
        if self.truth.min() < 0:
            raise BadInput("the class of a test sample is never negative: correct the stored predictions")

    def correct(self, k: int) -> npt.NDArray[np.bool_]:
        """Return whether the true class is among the best `k`, (n,)."""
        if not 1 <= k <= self.top.shape[1]:
            raise BadInput(f"the best {self.top.shape[1]} classes are stored: ask for 1 to that many, not {k}")
        return np.asarray((self.top[:, :k] == self.truth[:, None]).any(axis=1))

    def accuracy(self, k: int) -> float:
        """Return top-k accuracy over all samples."""
        return 100 * float(self.correct(k).mean())

    def per_class(self, k: int) -> dict[int, float]:
        """Return top-k accuracy for each class that has samples."""
        return self.per_group({int(label): int(label) for label in np.unique(self.truth)}, k)

    def per_group(self, group_of: Mapping[int, int], k: int) -> dict[int, float]:
        """Return top-k accuracy for each group of classes, such as the classes of one step."""
        groups = np.array([group_of[int(label)] for label in self.truth])
        correct = self.correct(k)
        return {int(group): 100 * float(correct[groups == group].mean()) for group in np.unique(groups)}

    def old_and_new(self, new: Iterable[int], k: int) -> tuple[float | None, float | None]:
        """Return top-k accuracy over samples of old classes and of the `new` ones; None where there are no samples."""
        is_new = np.isin(self.truth, list(new))
        correct = self.correct(k)
        old_accuracy, new_accuracy = (
            100 * float(correct[mask].mean()) if mask.any() else None for mask in (~is_new, is_new)
        )
        return old_accuracy, new_accuracy


@dataclass(frozen=True)
class MeanStd:
    """Mean and sample standard deviation (n - 1 in the denominator; None for a single value)."""

    mean: float
    std: float | None
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.std is None else f"{self.mean:.2f}±{self.std:.2f}"


def mean_and_std(values: Sequence[float]) -> MeanStd:
    """Return mean and standard deviation, over seeds, orders or sleeps.

    Example:
        >>> print(mean_and_std([1.0, 2.0, 3.0]))
        2.00±1.00
    """
    if not values:
        raise BadInput("an empty sequence has no mean: give at least one value")
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return MeanStd(math.fsum(values) / len(values), std, len(values))


def mu(accuracies: Sequence[float]) -> float:
    """Return the mean over all steps, including the base step, of the accuracy after sleep on all classes so far."""
    return mean_and_std(accuracies).mean


def alpha(accuracies: Sequence[float]) -> float:
    """Return the accuracy after the last step; an offline learner has one step, which ends with its last epoch."""
    if not accuracies:
        raise BadInput("an empty sequence has no last accuracy: give at least one value")
    return accuracies[-1]


def forgetting(history: Sequence[Mapping[int, float]]) -> float | None:
    """Return how much of its best accuracy each old class lost on average (Chaudhry et al. 2018).

    Args:
        history: Accuracy of each class (or group of classes) after each step. Classes first seen in the last step do
            not count.

    Returns:
        The mean over old classes of (best accuracy at an earlier step - accuracy at the last step), negative if old
        classes gained; None if there are no old classes.
    """
    best: dict[int, float] = {}
    for accuracies in history[:-1]:
        for key, value in accuracies.items():
            best[key] = max(value, best.get(key, value))
    if not best:
        return None
    return math.fsum(value - history[-1][key] for key, value in best.items()) / len(best)


@dataclass(frozen=True)
class StepPredictions:
    """Predictions at the end of a step.

    Attributes:
        after: After the sleep, for test samples of all classes seen so far.
        new: Classes first seen in this step.
        before: Before the sleep; None at the base step, and for methods that do not sleep.
    """

    after: Predictions
    new: frozenset[int]
    before: Predictions | None = None


@dataclass(frozen=True)
class RunMetrics:
    """All measures of one run, for one k.

    Attributes:
        mu: Mean accuracy over all steps.
        alpha: Accuracy after the last step.
        after: Accuracy after each sleep.
        before: Accuracy before each sleep; None where nothing was measured.
        gain: after - before, over the steps that have both.
        old: Accuracy on classes of earlier steps, after each step.
        new: Accuracy on classes new in the step, after each step.
        per_class: Accuracy of each class after the last step.
        forgetting: Mean over classes; None with a single step.
        forgetting_of_steps: Mean over groups of classes first seen in the same step, Chaudhry's tasks.
    """

    mu: float
    alpha: float
    after: list[float]
    before: list[float | None]
    gain: MeanStd | None
    old: list[float | None]
    new: list[float | None]
    per_class: dict[int, float]
    forgetting: float | None
    forgetting_of_steps: float | None


def run_metrics(steps: Sequence[StepPredictions], k: int) -> RunMetrics:
    """Return all top-k measures, from the predictions of a run's steps in order."""
    after = [step.after.accuracy(k) for step in steps]
    before = [None if step.before is None else step.before.accuracy(k) for step in steps]
    gains = [high - low for high, low in zip(after, before, strict=True) if low is not None]
    old_and_new = [step.after.old_and_new(step.new, k) for step in steps]
    first_step = {label: number for number, step in reversed(list(enumerate(steps))) for label in step.new}
    return RunMetrics(
        mu=mu(after),
        alpha=alpha(after),
        after=after,
        before=before,
        gain=mean_and_std(gains) if gains else None,
        old=[old for old, _ in old_and_new],
        new=[new for _, new in old_and_new],
        per_class=steps[-1].after.per_class(k),
        forgetting=forgetting([step.after.per_class(k) for step in steps]),
        forgetting_of_steps=forgetting([step.after.per_group(first_step, k) for step in steps]),
    )
