"""What every benchmark uses: a clock that ignores disturbances, and rows that say where they come from."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Row", "alternate", "row"]

Row = dict[str, Any]


def row(bench: str, value: float, unit: str, limit: str = "", **config: Any) -> Row:
    """One measured figure; `limit` says what is asked of it, where something is."""
    return {"bench": bench, "value": float(f"{value:.4g}"), "unit": unit, "limit": limit, "config": config}


def alternate(*works: Callable[[], object], repeats: int, block: int = 1) -> list[float]:
    """Median seconds of each work, run in turns so that a disturbance hits all alike.

    A turn is `block` runs; for more than one, the first of a turn does not count: threads of the work before may
    still be spinning. Nor does the first turn of all.
    """
    times: list[list[float]] = [[] for _ in works]
    for repeat in range(repeats + 1):
        for work, own in zip(works, times, strict=True):
            for run in range(block):
                start = time.perf_counter()
                work()
                if repeat and (run or block == 1):
                    own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]
