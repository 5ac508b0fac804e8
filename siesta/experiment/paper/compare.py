"""Our results beside the published values: finished runs, in the units of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from siesta.backbones import make_backbone
from siesta.experiment.config import Config, MethodEntry
from siesta.experiment.flops import achieved_gflops
from siesta.experiment.metrics import MeanStd, mean_and_std
from siesta.experiment.paper.formulas import DERIVATIONS
from siesta.experiment.paper.tables import TABLES, PublishedRow, PublishedTable, find_published_row
from siesta.experiment.results import FinishedRun, read_run

__all__ = ["COLUMNS", "PaperComparison", "column_titles", "compare_with_paper"]

COLUMNS = ("mu", "alpha", "parameters", "memory", "updates", "gain", "gflops", "hours")
"""The compared values: fields of `PublishedRow`."""

_DEFAULT_TABLE = "tab:no_aug"


def column_titles(row: PublishedRow | None) -> dict[str, str]:
    """Return titles of the columns with the units of a row's table, or of ImageNet's table without a row."""
    table = _table_of(row)
    memory = "GB" if table.memory_unit == 10**9 else "MB"
    updates = "millions" if table.updates_unit == 10**6 else "thousands"
    return {
        "mu": f"mu, top-{table.k} %",
        "alpha": f"alpha, top-{table.k} %",
        "parameters": "P, millions",
        "memory": f"M, {memory}",
        "updates": f"U, {updates}",
        "gain": "gain, points",
        "gflops": "GFLOPS",
        "hours": "hours",
    }


def _table_of(row: PublishedRow | None) -> PublishedTable:
    return TABLES[_DEFAULT_TABLE if row is None else row.table]


@dataclass(frozen=True)
class PaperComparison:
    """Our results of one method on one order beside the published row.

    Attributes:
        method: The method's name in the config.
        order: The order's name in the config.
        published: The row of the paper that it is compared with, if there is one.
        ours: Our values over all finished seeds, by the names of `COLUMNS`; empty if no seed is finished.
        runs: Number of finished seeds.
        note: Why there are no results, if there are none.
    """

    method: str
    order: str
    published: PublishedRow | None
    ours: Mapping[str, MeanStd]
    runs: int
    note: str = ""


def compare_with_paper(config: Config, out: Path, missing: Mapping[str, str]) -> Iterator[PaperComparison]:
    """Yield the comparison of every method and order of a config.

    Args:
        config: The config.
        out: The folder with the results.
        missing: Reasons why methods were not run, by method.
    """
    for order in config.orders:
        rows = config.published.get(order.name, {})
        for method in config.methods:
            row = _published(rows.get(method.name))
            runs = _finished_runs([out / "runs" / f"{method.name}-{order.name}-{seed}" for seed in config.seeds])
            note = "" if runs else "not run"
            yield PaperComparison(method.name, order.name, row, _our_values(runs, method, row), len(runs), note)
        for name, reason in missing.items():
            yield PaperComparison(name, order.name, _published(rows.get(name)), {}, 0, reason)


def _published(reference: tuple[str, str] | None) -> PublishedRow | None:
    return None if reference is None else find_published_row(*reference)


def _finished_runs(paths: list[Path]) -> list[FinishedRun]:
    runs = [read_run(path) for path in paths if path.exists()]
    return [run for run in runs if isinstance(run, FinishedRun)]


def _our_values(runs: list[FinishedRun], method: MethodEntry, row: PublishedRow | None) -> dict[str, MeanStd]:
    """Return mean and deviation over runs of every value that they have."""
    derivation = DERIVATIONS.get((row.table, row.method)) if row else None
    memory_parts = derivation.bytes if derivation else {}
    values = [_values_of(run, method, _table_of(row), memory_parts) for run in runs]
    present = {name: [found for run in values if (found := run[name]) is not None] for name in COLUMNS}
    return {name: mean_and_std(found) for name, found in present.items() if found}


def _values_of(
    run: FinishedRun, method: MethodEntry, table: PublishedTable, memory_parts: Mapping[str, int]
) -> dict[str, float | None]:
    """Return the values of one run; memory counts the parts that the paper counts in this row."""
    metrics = run.metrics[table.k]
    spent = run.resources
    stored = sum(size for name, size in spent.bytes.items() if not memory_parts or name in memory_parts)
    weights = spent.parameters - (_weights_below_cut(method) if table.trainable else 0)
    return {
        "mu": None if run.offline else metrics.mu,
        "alpha": metrics.alpha,
        "parameters": weights / 10**6,
        "memory": stored / table.memory_unit,
        "updates": spent.updates / table.updates_unit,
        "gain": metrics.gain.mean if metrics.gain else None,
        "gflops": achieved_gflops(spent),
        "hours": sum(spent.seconds.get(phase, 0.0) for phase in ("wake", "sleep")) / 3600,
    }


def _weights_below_cut(method: MethodEntry) -> int:
    network = method.network
    bottom = make_backbone(network.backbone, network.cut, weights="random").bottom
    return sum(tensor.numel() for tensor in bottom.parameters())
