"""Markdown tables of the demo, of learning a few classes of CUB-200, and of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from siesta.sleep.round_limits import LEAST_GAIN

__all__ = [
    "ROOT",
    "Row",
    "bench",
    "birds",
    "demo",
    "headlines",
    "networks",
    "rows_of",
    "sleep_rounds",
    "table",
    "unknown",
]

ROOT = Path(__file__).parent.parent
Row = dict[str, Any]
_PASSES_SHOWN = (0, 1, 2, 4, 8, 12, 16)


def rows_of(name: str) -> list[Row]:
    """Return the rows of a file of results."""
    lines = (ROOT / "results" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def demo() -> str:
    """Return the accuracies of the demo after each step, mean over seeds."""
    rows = rows_of("demo")
    class_counts = sorted({len(row["classes"]) for row in rows})
    seeds = sorted({row["config"]["seed"] for row in rows})
    body = []
    for count in class_counts:
        step = [row for row in rows if len(row["classes"]) == count]
        values = [mean(row[name] for row in step) for name in ("awake_only", "before_sleep", "after_sleep")]
        body.append([str(count), *(f"{value:.1f}" for value in values)])
    header = ["digits learned", "without sleep, %", "before sleep, %", "after sleep, %"]
    note = f"Mean over seeds {', '.join(map(str, seeds))}; `python scripts/demo_results.py`, {rows[0]['date'][:10]}."
    return f"{table(header, body)}\n\n{note}"


def birds() -> str:
    """Return accuracies on CUB-200 after ten classes, and after five more."""
    (row,) = rows_of("cub_ten_classes")
    first, more = row["ten_classes"], row["five_more"]
    body = [
        ["ten classes, learned", f"{first['awake']:.1f}", ""],
        [f"... after a sleep of {row['config']['updates']:,} updates", f"{first['after_sleep']:.1f}", ""],
        ["five more classes, learned", f"{more['old_awake']:.1f}", f"{more['new_awake']:.1f}"],
        ["... after a second sleep", f"{more['old_after_sleep']:.1f}", f"{more['new_after_sleep']:.1f}"],
    ]
    note = f"`{row['command']}`, {row['date'][:10]}."
    return f"{table(['CUB-200, 224 px', 'ten old classes, top-1 %', 'five new classes, top-1 %'], body)}\n\n{note}"


def sleep_rounds() -> str:
    """Return the accuracy after numbers of passes, by length of the rounds, and where held-out images end the sleep."""
    rows, trials = rows_of("studies/sleep_rounds"), dict[tuple[str, str, int], list[Row]]()
    for row in rows:
        trials.setdefault((row["situation"], row["plan"], row["seed"]), []).append(row)
    body = []
    for (situation, plan, seed), trial in sorted(trials.items()):
        right = {row["passes"]: f"{100 * row['validation']:.1f}" for row in trial}
        last, kept = _end_of_sleep([row["judges"].count("1") / len(row["judges"]) for row in trial])
        end = f"{trial[last]['passes']:g}: {100 * trial[kept]['validation']:.1f}" if last > 1 else ""
        body.append([situation, plan, str(seed), *(right.get(passes, "") for passes in _PASSES_SHOWN), end])
    header = ["situation", "passes a round", "seed", "before", *(f"after {passes}" for passes in _PASSES_SHOWN[1:])]
    dates = sorted({row["date"][:10] for row in rows})
    note = f"`python -m scripts.sleep_rounds CUB_200_2011`, {', '.join(dates)}."
    return f"{table([*header, 'ended after, with'], body)}\n\n{note}"


def _end_of_sleep(accuracies: list[float]) -> tuple[int, int]:
    """Return the last round and the best round of a sleep; `accuracies` has the one before the sleep first."""
    best = min(1, len(accuracies) - 1)
    for number in range(2, len(accuracies)):
        gain = accuracies[number] - accuracies[best]
        best = number if gain >= 0 else best
        if gain < LEAST_GAIN:
            return number, best
    return len(accuracies) - 1, best


def unknown() -> str:
    """Return how well scores separate learned from other classes, and what error rates reject, for each data set."""
    parts: dict[str, list[Row]] = {}
    for row in rows_of("unknown"):
        parts.setdefault(row["data"], []).append(row)
    header = ["data", "AUROC of the score", "AUROC of familiarity", "the same for errors: score", "familiarity"]
    names = ("unknown_score", "unknown_familiarity", "errors_score", "errors_familiarity")
    body = [[data, *(f"{rows[0][f'auroc_{name}']:.1f}" for name in names)] for data, rows in parts.items()]
    notes = (_unknown_note(data, rows) for data, rows in parts.items())
    separation = f"{table(header, body)}\n\n{' '.join(notes)}"
    header = [
        "data",
        "error rate asked for",
        "rejected, of learned classes",
        "wrong, of those accepted",
        "rejected, of others",
    ]
    body = [[data, *_unknown_rate(row)] for data, rows in parts.items() for row in rows[1:]]
    return f"{separation}\n\n{table(header, body)}\n\n`python -m scripts.unknown_results`."


def _unknown_rate(row: Row) -> list[str]:
    rate = f"{100 * row['error_rate']:g} %"
    if "refused" in row:
        return [rate, "refused", "", ""]
    shares = (row["learned_rejected"], 100 - row["right_of_accepted"], row["others_rejected"])
    return [rate, *(f"{share:.1f} %" for share in shares)]


def _unknown_note(data: str, rows: list[Row]) -> str:
    first, config = rows[0], rows[0]["config"]
    sizes = f"{first['learned']:,} and {first['others']:,} test images of {config['image_size']} px"
    slept = f"{config['classes']} classes, one sleep of {config['updates']:,} updates"
    held_out = f"{first['held_out']} measured held-out samples, top-1 {first['top1']:.1f} %"
    return f"{data}: {slept}, {held_out}; {sizes} ({first['date'][:10]})."


def networks() -> str:
    """Return accuracy and costs of each measured network; a part that has no row yet is a dash."""
    command = "`python -m scripts.network_results CUB_200_2011`"
    if not (ROOT / "results" / "networks.jsonl").exists():
        return f"No network is measured yet; {command} does so."
    parts: dict[str, dict[str, Row]] = {}
    for row in rows_of("networks"):
        parts.setdefault(row["network"], {})[row["bench"]] = row
    body = [
        [name, *_network_costs(found.get("network_costs")), *_network_accuracy(found.get("network_accuracy"))]
        for name, found in parts.items()
    ]
    header = ["network", "image size", "predict, ms", "learn, ms", "bytes a sample", "peak RAM, MB"]
    header += ["top-1 / top-5 on CUB-200, %", "mean over steps"]
    dates = sorted({row["date"][:10] for found in parts.values() for row in found.values()})
    return f"{table(header, body)}\n\n{command}, {' and '.join(dates)}."


def _network_costs(row: Row | None) -> list[str]:
    if row is None:
        return ["-"] * 5
    times = [f"{row[name]:.1f}" for name in ("predict_ms", "learn_ms")]
    return [f"{row['config']['image_size']} px", *times, f"{row['bytes_a_sample']:,}", f"{row['peak_mb']:.0f}"]


def _network_accuracy(row: Row | None) -> list[str]:
    if row is None:
        return ["-"] * 2
    return [f"{row['top1']:.1f} / {row['top5']:.1f}", f"{row['top1_mean']:.1f} / {row['top5_mean']:.1f}"]


HEADLINES = {
    "learn_ms": "learn one image",
    "predict_ms": "predict one image",
    "predict_speedup": "... speed-up over eager torch and FAISS calls",
    "sleep_rate": "sleep",
    "sleep_over_eager": "... speed-up over a plain eager training loop",
    "plan_seconds": "plan one balanced draw per stored sample",
    "add_with_eviction": "store a sample in a full memory, with commit",
    "disk_bytes": "size on disk",
    "rss_growth_read_all": "additional RAM after reading all samples",
}


def headlines() -> str:
    """Return the most important benchmarks, for the default network and the largest memory."""
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
    return f"{table(['operation', 'measured', 'with'], body)}\n\n{note}"


def bench() -> str:
    """Return every benchmark."""
    rows = rows_of("bench")
    body = []
    for row in rows:
        config = ", ".join(f"{name} {_short(value)}" for name, value in row["config"].items())
        body.append([row["bench"], f"{row['value']:g} {row['unit']}", row["limit"], config])
    return f"{table(['benchmark', 'measured', 'target', 'configuration'], body)}\n\n{_bench_note(rows)}"


def _bench_note(rows: list[Row]) -> str:
    machine, days = rows[0]["machine"], sorted({row["date"][:10] for row in rows})
    return f"`make bench`, {' and '.join(days)}, {machine['cores']} cores, torch {machine['torch']}."


def _short(value: Any) -> str:
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)
