"""The published values beside our results, matched by data set, order and method where they are comparable."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.experiment.metrics import MeanStd
from siesta.experiment.paper.tables import SLEEP_GAINS, TABLES, PublishedRow, find_published_row
from siesta.experiment.report.formatting import format_amount, format_percent
from siesta.experiment.report.groups import SeedGroup

__all__ = ["CLASS_COUNTS", "PublishedCells", "published_cells", "published_gain"]

CLASS_COUNTS = {"cub200": 200, "imagenet": 1000, "places365": 365, "places365_lt": 365}
"""Classes of each data set in the paper."""

_IMAGE_SIZE = 224
_CLASS_INCREMENTAL = "class_incremental"
_TABLES: dict[tuple[str, str], str] = {
    ("cub200", _CLASS_INCREMENTAL): "tab:cub",
    ("imagenet", _CLASS_INCREMENTAL): "tab:no_aug",
    ("imagenet", "iid"): "text:iid",
    ("places365", _CLASS_INCREMENTAL): "tab:placesfull",
    ("places365_lt", _CLASS_INCREMENTAL): "tab:places",
}
"""The table of each data set and order."""

_METHODS = {
    "siesta": "SIESTA",
    "siesta_uniform": "SIESTA, uniform",
    "remind": "REMIND",
    "er": "ER",
    "offline_whole": "Offline",
}
"""The published name of each method in these tables."""

_OTHER_TABLES: dict[tuple[str, str, str], tuple[str, str]] = {
    ("imagenet", _CLASS_INCREMENTAL, "siesta_aug"): ("tab:aug_expts_supp", "SIESTA"),
    ("imagenet", _CLASS_INCREMENTAL, "slda"): ("text:online", "SLDA"),
    ("imagenet", _CLASS_INCREMENTAL, "ncm"): ("text:online", "NCM"),
}
"""Table and row of methods that are published elsewhere."""


@dataclass(frozen=True)
class PublishedCells:
    """Published values as formatted text; None where nothing is printed. The accuracies are top-k."""

    k: int
    source: str
    parameters: str | None
    mu: str | None
    alpha: str | None
    memory: str | None
    updates: str | None
    gflops: str | None


def published_cells(group: SeedGroup) -> PublishedCells | None:
    """Return the published values of a method under its own name, on a whole data set at the paper's image size."""
    dataset = group.first.whole_dataset
    last = group.first.last
    if dataset is None or group.method not in (*_METHODS, *(method for *_, method in _OTHER_TABLES)):
        return None
    if (last["data"]["image_size"], last["classes"]) != (_IMAGE_SIZE, CLASS_COUNTS.get(dataset)):
        return None
    reference = _OTHER_TABLES.get((dataset, group.order, group.method))
    if reference is None:
        reference = _TABLES.get((dataset, group.order), ""), _METHODS.get(group.method, "")
    row = find_published_row(*reference)
    return _formatted(row) if row is not None and row.printed else None


def _formatted(row: PublishedRow) -> PublishedCells:
    table = TABLES[row.table]

    def accuracy(mean: float | None, std: float | None) -> str | None:
        return None if mean is None else format_percent(MeanStd(mean, std, 1))

    def amount(value: float | None, unit: int, name: str = "") -> str | None:
        return None if value is None else format_amount(value * unit, name)

    return PublishedCells(
        k=table.k,
        source=table.source,
        parameters=amount(row.parameters, 10**6),
        mu=accuracy(row.mu, row.mu_std),
        alpha=accuracy(row.alpha, row.alpha_std),
        memory=amount(row.memory, table.memory_unit, "B"),
        updates=amount(row.updates, table.updates_unit),
        gflops=amount(row.gflops, 10**9),
    )


def published_gain(group: SeedGroup) -> str | None:
    """Return the published gain of a sleep (ImageNet-1K, top-5) for the same number of classes between sleeps."""
    if (group.first.whole_dataset, group.order, group.method) != ("imagenet", _CLASS_INCREMENTAL, "siesta"):
        return None
    classes = [row["classes"] for row in group.first.rows]
    gain = SLEEP_GAINS.get(classes[-1] - classes[-2]) if len(classes) > 1 else None
    return format_percent(MeanStd(*gain, 9), sign=True) if gain else None
