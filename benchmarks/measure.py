"""Timing that is robust against disturbances, and the rows that benchmarks yield."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Row", "alternate", "row"]

Row = dict[str, Any]


def row(bench: str, value: float, unit: str, limit: str = "", **config: Any) -> Row:
    """Return one measurement; `limit` is its target, empty where there is none."""
    return {"bench": bench, "value": float(f"{value:.4g}"), "unit": unit, "limit": limit, "config": config}


def alternate(*works: Callable[[], object], repeats: int, block: int = 1) -> list[float]:
    """Return the median seconds of each function, called in turns so that a disturbance affects all of them.

    A turn is `block` calls. With more than one, the first call of a turn is not counted, because threads of the
    function before may still be spinning. The first turn of each function is not counted either.
    """
    all_times: list[list[float]] = [[] for _ in works]
    for repeat in range(repeats + 1):
        for work, times in zip(works, all_times, strict=True):
            for call in range(block):
                start = time.perf_counter()
                work()
                if repeat and (call or block == 1):
                    times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in all_times]
