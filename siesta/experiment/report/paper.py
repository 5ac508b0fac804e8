"""Which printed row stands beside which of our results: by data set, order and method, nothing guessed."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.experiment.metrics import Spread
from siesta.experiment.published import GAINS, TABLES, Row, find_row
from siesta.experiment.report.groups import Group
from siesta.experiment.report.numbers import amount, percent

__all__ = ["Beside", "gain_beside", "printed_beside"]

_IN_CLASSES = "class_incremental"
_TABLES: dict[tuple[str, str], str] = {
    ("cub200", _IN_CLASSES): "tab:cub",
    ("imagenet", _IN_CLASSES): "tab:no_aug",
    ("imagenet", "iid"): "text:iid",
    ("places365", _IN_CLASSES): "tab:placesfull",
    ("places365_lt", _IN_CLASSES): "tab:places",
}
_METHODS = {
    "siesta": "SIESTA",
    "siesta_uniform": "SIESTA, uniform",
    "remind": "REMIND",
    "er": "ER",
    "offline_whole": "Offline",
}
_ELSEWHERE: dict[tuple[str, str, str], tuple[str, str]] = {
    ("imagenet", _IN_CLASSES, "siesta_aug"): ("tab:aug_expts_supp", "SIESTA"),
    ("imagenet", _IN_CLASSES, "slda"): ("text:online", "SLDA"),
    ("imagenet", _IN_CLASSES, "ncm"): ("text:online", "NCM"),
}
CLASSES = {"cub200": 200, "imagenet": 1000, "places365": 365, "places365_lt": 365}
_PIXELS = 224


@dataclass(frozen=True)
class Beside:
    """What the paper printed, as text; None where it printed nothing. `k` is that of its accuracies."""

    k: int
    source: str
    parameters: str | None
    mu: str | None
    alpha: str | None
    memory: str | None
    updates: str | None
    rate: str | None


def printed_beside(group: Group) -> Beside | None:
    """The paper's row for a method under its own name, on all classes of a data set at the paper's size; else None."""
    dataset, last = group.first.published_as, group.first.last
    if dataset is None or group.method not in (*_METHODS, *(method for *_, method in _ELSEWHERE)):
        return None
    if (last["data"]["image_size"], last["classes"]) != (_PIXELS, CLASSES.get(dataset)):
        return None
    place = _ELSEWHERE.get((dataset, group.order, group.method))
    if place is None:
        place = _TABLES.get((dataset, group.order), ""), _METHODS.get(group.method, "")
    row = find_row(*place)
    return _written(row) if row is not None and row.printed else None


def _written(row: Row) -> Beside:
    table = TABLES[row.table]

    def accuracy(mean: float | None, std: float | None) -> str | None:
        return None if mean is None else percent(Spread(mean, std, 1))

    def size(value: float | None, unit: int, name: str = "") -> str | None:
        return None if value is None else amount(value * unit, name)

    return Beside(
        k=table.k,
        source=table.source,
        parameters=size(row.parameters, 10**6),
        mu=accuracy(row.mu, row.mu_std),
        alpha=accuracy(row.alpha, row.alpha_std),
        memory=size(row.memory, table.memory_unit, "B"),
        updates=size(row.updates, table.updates_unit),
        rate=size(row.gflops, 10**9),
    )


def gain_beside(group: Group) -> str | None:
    """What a sleep added in the paper (ImageNet-1K, top-5), for as many classes between sleeps."""
    if (group.first.published_as, group.order, group.method) != ("imagenet", _IN_CLASSES, "siesta"):
        return None
    classes = [row["classes"] for row in group.first.rows]
    printed = GAINS.get(classes[-1] - classes[-2]) if len(classes) > 1 else None
    return percent(Spread(*printed, 9), sign=True) if printed else None
