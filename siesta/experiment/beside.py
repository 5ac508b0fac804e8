"""Ours beside the published values: finished runs, their answers counted again, in the units of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from siesta.backbones import make_backbone
from siesta.experiment.accounting import ACCOUNTS
from siesta.experiment.config import Config, MethodEntry
from siesta.experiment.flops import achieved_rate
from siesta.experiment.metrics import Spread, spread
from siesta.experiment.published import TABLES, Row, Table, find_row
from siesta.experiment.results import Run, read_run

__all__ = ["COLUMNS", "Line", "beside", "columns"]

COLUMNS = ("mu", "alpha", "parameters", "memory", "updates", "gain", "gflops", "hours")
"""What is compared: fields of a published row."""


def columns(row: Row | None) -> dict[str, str]:
    """How these are called, with the units of a row's table; without one those of ImageNet's."""
    table = TABLES[_USUAL if row is None else row.table]
    memory = "GB" if table.memory_unit == 10**9 else "MB"
    updates = "millions" if table.updates_unit == 10**6 else "thousands"
    names = (f"mu, top-{table.k} %", f"alpha, top-{table.k} %", "P, millions", f"M, {memory}", f"U, {updates}")
    return dict(zip(COLUMNS, (*names, "gain, points", "GFLOPS", "hours"), strict=True))


_USUAL = "tab:no_aug"


@dataclass(frozen=True)
class Line:
    """One method on one order.

    Attributes:
        method: Its name in the config.
        order: The order's.
        published: The row of the paper that it is compared with, if it has one.
        ours: By the names of `COLUMNS`, over all seeds that are done; empty while none is.
        runs: How many seeds these are.
        note: Why there is nothing, if there is not.
    """

    method: str
    order: str
    published: Row | None
    ours: Mapping[str, Spread]
    runs: int
    note: str = ""


def beside(config: Config, out: Path, missing: Mapping[str, str]) -> Iterator[Line]:
    """Every method and order of a config; `missing` says why methods did not run."""
    for order in config.orders:
        rows = config.published.get(order.name, {})
        for method in config.methods:
            row = _row(rows.get(method.name))
            paths = [out / "runs" / f"{method.name}-{order.name}-{seed}" for seed in config.seeds]
            found = [run for path in paths if path.exists() and isinstance(run := read_run(path), Run)]
            yield Line(method.name, order.name, row, _ours(found, method, row), len(found), "" if found else "not run")
        for name, why in missing.items():
            yield Line(name, order.name, _row(rows.get(name)), {}, 0, why)


def _row(named: tuple[str, str] | None) -> Row | None:
    return None if named is None else find_row(*named)


def _ours(runs: list[Run], method: MethodEntry, row: Row | None) -> dict[str, Spread]:
    """Mean and spread of all that can be told of the runs; without a published row in the units of ImageNet's."""
    table = TABLES[_USUAL if row is None else row.table]
    parts = ACCOUNTS[row.table, row.method].bytes if row and (row.table, row.method) in ACCOUNTS else {}
    values = [_values(run, method, table, parts) for run in runs]
    told = {name: [value for some in values if (value := some[name]) is not None] for name in COLUMNS}
    return {name: spread(some) for name, some in told.items() if some}


def _values(run: Run, method: MethodEntry, table: Table, parts: Mapping[str, int]) -> dict[str, float | None]:
    found, spent = run.summaries[table.k], run.resources
    stored = {name: size for name, size in spent.bytes.items() if not parts or name in parts}
    weights = spent.parameters - (_frozen(method) if table.trainable else 0)
    return {
        "mu": None if run.offline else found.mu,
        "alpha": found.alpha,
        "parameters": weights / 10**6,
        "memory": sum(stored.values()) / table.memory_unit,
        "updates": spent.updates / table.updates_unit,
        "gain": found.gain.mean if found.gain else None,
        "gflops": achieved_rate(spent),
        "hours": sum(spent.seconds.get(phase, 0.0) for phase in ("wake", "sleep")) / 3600,
    }


def _frozen(method: MethodEntry) -> int:
    """Weights below the cut."""
    network = method.network
    bottom = make_backbone(network.backbone, network.cut, weights="random").bottom
    return sum(some.numel() for some in bottom.parameters())
