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


def alternate(*works: Callable[[], object], repeats: int) -> list[float]:
    """Median seconds of each work, all run in turns so that a disturbance hits them alike; one warm-up each."""
    times: list[list[float]] = [[] for _ in works]
    for repeat in range(repeats + 1):
        for work, own in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            if repeat:
                own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]
