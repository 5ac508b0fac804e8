"""Runs put together: the seeds of a method on an order are a group, groups on the same data a comparison."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from siesta.errors import BadInput
from siesta.experiment.metrics import Spread, spread
from siesta.experiment.report.document import Series
from siesta.experiment.results import Run
from siesta.methods import METHODS

__all__ = ["Comparison", "Group", "compared"]


@dataclass(frozen=True, eq=False)
class Group:
    """One method on one order, over its seeds."""

    series: Series
    method: str
    order: str
    runs: Sequence[Run]

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        return self.series.label

    @property
    def first(self) -> Run:
        """The run of its lowest seed."""
        return self.runs[0]

    @property
    def offline(self) -> bool:
        """Whether it saw everything at once."""
        return self.first.offline

    @property
    def sleeps(self) -> bool:
        """Whether it was asked before and after a sleep."""
        return any(step.before is not None for step in self.first.steps)

    def over_seeds(self, measure: Callable[[Run], float | None]) -> Spread | None:
        """Mean and deviation of a measure; None where some run has none."""
        values = [value for run in self.runs if (value := measure(run)) is not None]
        return spread(values) if len(values) == len(self.runs) else None

    def curve(self, measure: Callable[[Run], Sequence[float | None]]) -> list[Spread | None]:
        """The same of a measure that every step has."""
        return [self.over_seeds(lambda run, step=step: measure(run)[step]) for step in range(len(self.first.steps))]  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Comparison:
    """All groups that learned the same data, by order."""

    data: str
    orders: Mapping[str, Sequence[Group]]

    def groups(self) -> list[Group]:
        """All of them."""
        return [group for groups in self.orders.values() for group in groups]


def compared(runs: Iterable[Run]) -> list[Comparison]:
    """Sorts runs into comparisons; a method that comes from several folders is named with each."""
    by_data: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_data[run.data].append(run)
    return [_comparison(data, by_data[data]) for data in sorted(by_data, key=lambda data: _place(by_data[data][0]))]


def _place(run: Run) -> tuple[bool, int, str]:
    """Whole data sets come first, and large pictures before small ones."""
    data = run.last.get("data") or {"image_size": 0}
    return run.published_as is None, -data["image_size"], run.data


def _comparison(data: str, runs: Sequence[Run]) -> Comparison:
    sources: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        sources[run.last["method"]].add(run.source)
    members: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.last["seed"]):
        method = run.last["method"]
        label = method if len(sources[method]) == 1 else f"{method} ({run.source})"
        members[label, run.last["order"]["name"]].append(run)
    first_of = {label: group[0] for (label, _), group in reversed(members.items())}
    labels = sorted(first_of, key=lambda label: (_rank(first_of[label]), label))
    series = {label: Series(label, place) for label, place in _places(labels).items()}
    orders = {
        order: [_group(series[label], order, members[label, order]) for label in labels if (label, order) in members]
        for order in sorted({order for _, order in members})
    }
    return Comparison(data, orders)


def _places(labels: Sequence[str]) -> dict[str, int]:
    """A method looks the same in every comparison; variants take the places that are left."""
    own = {label: place for place, label in enumerate(METHODS)}
    used = {own[label] for label in labels if label in own}
    free = (place for place in itertools.count() if place not in used)
    return {label: own[label] if label in own else next(free) for label in labels}


def _rank(run: Run) -> tuple[int, bool]:
    """Methods come in the order of `METHODS`, and under their own name before their variants."""
    kinds = list(METHODS)
    kind = run.last["kind"]
    return (kinds.index(kind) if kind in kinds else len(kinds)), run.last["method"] != kind


def _group(series: Series, order: str, runs: Sequence[Run]) -> Group:
    for run in runs[1:]:
        if (run.last["settings"], len(run.steps)) != (runs[0].last["settings"], len(runs[0].steps)):
            raise BadInput(
                f"{runs[0].path} and {run.path} are two seeds in different settings: run them into separate folders"
            )
    return Group(series, runs[0].last["method"], order, runs)
