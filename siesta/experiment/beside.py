"""Ours beside the published values, from the rows of finished runs, in the units of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siesta.backbones import make_backbone
from siesta.contracts import Resources
from siesta.experiment.accounting import ACCOUNTS
from siesta.experiment.config import Config, MethodEntry
from siesta.experiment.flops import achieved_rate
from siesta.experiment.metrics import Spread, spread
from siesta.experiment.published import TABLES, Row, Table, find_row
from siesta.experiment.run_folder import read_rows
from siesta.methods import METHODS

__all__ = ["COLUMNS", "Line", "beside"]

COLUMNS: Mapping[str, str] = {
    "mu": "mu, %",
    "alpha": "alpha, %",
    "parameters": "P, M",
    "memory": "M",
    "updates": "U",
    "gain": "gain, points",
    "gflops": "GFLOPS",
    "hours": "hours",
}
"""What is compared: fields of a published row, and how they are called."""

Rows = list[dict[str, Any]]


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
            runs = [out / "runs" / f"{method.name}-{order.name}-{seed}" for seed in config.seeds]
            found = [read_rows(run) for run in runs if (run / "done").exists()]
            yield Line(method.name, order.name, row, _ours(found, method, row), len(found), "" if found else "not run")
        for name, why in missing.items():
            yield Line(name, order.name, _row(rows.get(name)), {}, 0, why)


def _row(named: tuple[str, str] | None) -> Row | None:
    return None if named is None else find_row(*named)


def _ours(runs: list[Rows], method: MethodEntry, row: Row | None) -> dict[str, Spread]:
    """Mean and spread of all that can be told of the runs; without a published row in the units of ImageNet's."""
    table = TABLES["tab:no_aug" if row is None else row.table]
    parts = ACCOUNTS[row.table, row.method].bytes if row and (row.table, row.method) in ACCOUNTS else {}
    values = [_values(rows, method, table, parts) for rows in runs]
    told = {name: [value for some in values if (value := some[name]) is not None] for name in COLUMNS}
    return {name: spread(some) for name, some in told.items() if some}


def _values(rows: Rows, method: MethodEntry, table: Table, parts: Mapping[str, int]) -> dict[str, float | None]:
    after = [row for row in rows if row["phase"] == "after"]
    accuracies, last = [float(row[f"top{table.k}"]) for row in after], after[-1]
    before = {row["step"]: float(row[f"top{table.k}"]) for row in rows if row["phase"] == "before"}
    gains = [value - before[row["step"]] for value, row in zip(accuracies, after, strict=True) if row["step"] in before]
    stored = {name: size for name, size in last["bytes"].items() if not parts or name in parts}
    spent = Resources(last["updates"], last["parameters"], last["bytes"], last["flops"], last["seconds"])
    weights = spent.parameters - (_frozen(method) if table.trainable else 0)
    return {
        "mu": None if METHODS[method.kind].offline else spread(accuracies).mean,
        "alpha": accuracies[-1],
        "parameters": weights / 10**6,
        "memory": sum(stored.values()) / table.memory_unit,
        "updates": spent.updates / table.updates_unit,
        "gain": spread(gains).mean if gains else None,
        "gflops": achieved_rate(spent),
        "hours": sum(spent.seconds.get(phase, 0.0) for phase in ("wake", "sleep")) / 3600,
    }


def _frozen(method: MethodEntry) -> int:
    """Weights below the cut."""
    network = method.network
    bottom = make_backbone(network.backbone, network.cut, weights="random").bottom
    return sum(some.numel() for some in bottom.parameters())
