"""Tables of what was measured on this machine: the demo, ten birds, the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

__all__ = ["ROOT", "bench", "birds", "demo", "headlines", "rows_of", "table", "unknown"]

ROOT = Path(__file__).parent.parent
Row = dict[str, Any]


def rows_of(name: str) -> list[Row]:
    """The rows of a results file."""
    lines = (ROOT / "results" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def demo() -> str:
    """Mean over seeds, step by step."""
    rows = rows_of("demo")
    known = sorted({len(row["classes"]) for row in rows})
    seeds = sorted({row["config"]["seed"] for row in rows})
    body = []
    for count in known:
        some = [row for row in rows if len(row["classes"]) == count]
        values = [mean(row[name] for row in some) for name in ("awake_only", "before_sleep", "after_sleep")]
        body.append([str(count), *(f"{value:.1f}" for value in values)])
    header = ["digits taught so far", "never sleeps, %", "before sleep, %", "after sleep, %"]
    note = f"Mean over seeds {', '.join(map(str, seeds))}; `python scripts/demo_results.py`, {rows[0]['date'][:10]}."
    return f"{table(header, body)}\n\n{note}"


def birds() -> str:
    """Ten birds, then five more."""
    (row,) = rows_of("cub_ten_classes")
    first, more = row["ten_classes"], row["five_more"]
    body = [
        ["ten classes, just taught", f"{first['awake']:.1f}", ""],
        [f"... after a sleep of {row['config']['updates']:,} updates", f"{first['after_sleep']:.1f}", ""],
        ["five more classes, just taught", f"{more['old_awake']:.1f}", f"{more['new_awake']:.1f}"],
        ["... after a second sleep", f"{more['old_after_sleep']:.1f}", f"{more['new_after_sleep']:.1f}"],
    ]
    note = f"`{row['command']}`, {row['date'][:10]}."
    return f"{table(['CUB-200, 224 px', 'ten old classes, top-1 %', 'five new classes, top-1 %'], body)}\n\n{note}"


def unknown() -> str:
    """What a wanted error rate does to what was taught, and to what was not."""
    rows = rows_of("unknown")
    names = ("taught_rejected", "right_of_answered", "never_taught_rejected")
    body = [[f"{100 * row['error_rate']:g} %", *(f"{row[name]:.1f} %" for name in names)] for row in rows]
    header = [
        "errors wanted",
        "rejected, of birds taught",
        "right, of those answered",
        "rejected, of birds never taught",
    ]
    first, config = rows[0], rows[0]["config"]
    sizes = f"{first['taught']:,} and {first['never_taught']:,} test pictures, {config['image_size']} px"
    slept = f"one sleep of {config['updates']:,} updates, {first['held_out']:,} held-out samples"
    return f"{table(header, body)}\n\n{sizes}, {slept}; `python -m scripts.unknown_results`, {first['date'][:10]}."


HEADLINES = {
    "learn_ms": "teach one picture",
    "predict_ms": "ask about one picture",
    "predict_speedup": "... asking, over eager torch and FAISS calls",
    "sleep_rate": "sleep",
    "sleep_over_eager": "... over a plain eager training loop",
    "plan_seconds": "plan as many balanced draws as there are samples",
    "add_with_eviction": "store a sample in a full memory, committed",
    "disk_bytes": "on disk",
    "rss_growth_read_all": "RAM more than an empty learner, all samples read",
}


def headlines() -> str:
    """The benchmark rows that matter most, for the default network and the largest memory."""
    rows = [row for row in rows_of("bench") if row["group"] != "policies"]
    most = max(row["config"].get("samples", 0) for row in rows)
    shown, body = [], []
    for row in rows:
        config = row["config"]
        default = config.get("backbone", "efficientnet_lite0") == "efficientnet_lite0"
        if row["bench"] in HEADLINES and default and config.get("samples", most) == most:
            shown.append(row)
            size = f"{config['image_size']} px" if "image_size" in config else f"{most:,} samples"
            body.append([HEADLINES[row["bench"]], f"{row['value']:g} {row['unit']}", size])
    note = f"{_bench_note(shown)} All rows: [docs/performance.md](docs/performance.md)."
    return f"{table(['what', 'measured', 'at'], body)}\n\n{note}"


def bench() -> str:
    """Every benchmark row."""
    rows = rows_of("bench")
    body = []
    for row in rows:
        config = ", ".join(f"{name} {_short(value)}" for name, value in row["config"].items())
        body.append([row["bench"], f"{row['value']:g} {row['unit']}", row["limit"], config])
    return f"{table(['benchmark', 'measured', 'asked for', 'of'], body)}\n\n{_bench_note(rows)}"


def _bench_note(rows: list[Row]) -> str:
    machine, days = rows[0]["machine"], sorted({row["date"][:10] for row in rows})
    return f"`make bench`, {' and '.join(days)}, {machine['cores']} cores, torch {machine['torch']}."


def _short(value: Any) -> str:
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)
