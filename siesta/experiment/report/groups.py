"""Runs grouped for comparison: the seeds of a method on an order, and the groups that learned the same data."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from siesta.errors import BadInput
from siesta.experiment.metrics import MeanStd, mean_and_std
from siesta.experiment.report.document import Series
from siesta.experiment.results import FinishedRun
from siesta.methods import METHODS

__all__ = ["DatasetComparison", "SeedGroup", "group_by_dataset"]


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """The runs of one method on one order, one for each seed."""

    series: Series
    method: str
    order: str
    runs: Sequence[FinishedRun]

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        return self.series.label

    @property
    def first(self) -> FinishedRun:
        """The run with the lowest seed."""
        return self.runs[0]

    @property
    def offline(self) -> bool:
        """Whether the method gets all samples in one step."""
        return self.first.offline

    @property
    def sleeps(self) -> bool:
        """Whether the method was evaluated before and after sleeps."""
        return any(step.before is not None for step in self.first.steps)

    def over_seeds(self, measure: Callable[[FinishedRun], float | None]) -> MeanStd | None:
        """Return mean and deviation of a measure; None if any run lacks it."""
        values = [value for run in self.runs if (value := measure(run)) is not None]
        return mean_and_std(values) if len(values) == len(self.runs) else None

    def curve(self, measure: Callable[[FinishedRun], Sequence[float | None]]) -> list[MeanStd | None]:
        """Return mean and deviation for each step of a measure that has a value for each step."""
        return [self.over_seeds(lambda run, step=step: measure(run)[step]) for step in range(len(self.first.steps))]  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class DatasetComparison:
    """All groups that learned the same data, by order."""

    data: str
    orders: Mapping[str, Sequence[SeedGroup]]

    def groups(self) -> list[SeedGroup]:
        """Return the groups of all orders."""
        return [group for groups in self.orders.values() for group in groups]


def group_by_dataset(runs: Iterable[FinishedRun]) -> list[DatasetComparison]:
    """Group runs into one comparison for each data set; a method from several folders is labelled with each folder."""
    by_data: dict[str, list[FinishedRun]] = defaultdict(list)
    for run in runs:
        by_data[run.data].append(run)
    return [_comparison(data, by_data[data]) for data in sorted(by_data, key=lambda data: _data_rank(by_data[data][0]))]


def _data_rank(run: FinishedRun) -> tuple[bool, int, str]:
    """Return a sort key: whole data sets come first, and large images before small ones."""
    data = run.last.get("data") or {"image_size": 0}
    return run.whole_dataset is None, -data["image_size"], run.data


def _comparison(data: str, runs: Sequence[FinishedRun]) -> DatasetComparison:
    sources: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        sources[run.last["method"]].add(run.source)
    members: dict[tuple[str, str], list[FinishedRun]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.last["seed"]):
        method = run.last["method"]
        label = method if len(sources[method]) == 1 else f"{method} ({run.source})"
        members[label, run.last["order"]["name"]].append(run)
    first_run = {label: group[0] for (label, _), group in reversed(members.items())}
    labels = sorted(first_run, key=lambda label: (_method_rank(first_run[label]), label))
    series = {label: Series(label, index) for label, index in _style_indices(labels).items()}
    orders = {
        order: [_group(series[label], order, members[label, order]) for label in labels if (label, order) in members]
        for order in sorted({order for _, order in members})
    }
    return DatasetComparison(data, orders)


def _style_indices(labels: Sequence[str]) -> dict[str, int]:
    """Return an index of the palette for each label: fixed for methods, any unused one for variants."""
    fixed = {label: index for index, label in enumerate(METHODS.own)}
    used = {fixed[label] for label in labels if label in fixed}
    unused = (index for index in itertools.count() if index not in used)
    return {label: fixed[label] if label in fixed else next(unused) for label in labels}


def _method_rank(run: FinishedRun) -> tuple[int, bool]:
    """Return a sort key: methods in the order of `METHODS`, each before its variants under other names."""
    kinds = list(METHODS.own)
    kind = run.last["kind"]
    return (kinds.index(kind) if kind in kinds else len(kinds)), run.last["method"] != kind


def _group(series: Series, order: str, runs: Sequence[FinishedRun]) -> SeedGroup:
    first = runs[0]
    for run in runs[1:]:
        if (run.last["settings"], len(run.steps)) != (first.last["settings"], len(first.steps)):
            raise BadInput(
                f"{first.path} and {run.path} are two seeds with different settings: run them into separate folders"
            )
    return SeedGroup(series, first.last["method"], order, runs)
