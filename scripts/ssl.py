"""Tables of what `scripts.ssl_results` measured: ways of pre-training, and the chain from the best of them."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from scripts.measured import ROOT, rows_of, table

__all__ = ["chain", "pretraining"]

_NOT_YET = "Not measured yet: `python -m scripts.ssl_results CUB_200_2011`."


def _measured(name: str) -> list[dict[str, Any]]:
    return rows_of(f"ssl/{name}") if (ROOT / "results" / "ssl" / f"{name}.jsonl").exists() else []


def pretraining() -> str:
    """A row for each start: what it saw, and what its bottom is worth beside an untrained one."""
    trained, read = {row["method"]: row for row in _measured("pretraining")}, _measured("readout")
    if not read:
        return _NOT_YET
    tops = {name: [row["top1"] for row in read if row["method"] == name] for name in {row["method"] for row in read}}
    floor = mean(tops["untrained"])
    body = []
    for name in sorted(tops, key=lambda some: -mean(tops[some])):
        better = "-" if name == "untrained" else "yes" if min(tops[name]) > max(tops["untrained"]) else "**no**"
        spread = f" ± {stdev(tops[name]):.1f}" if len(tops[name]) > 1 else ""
        gain = f"{mean(tops[name]) - floor:+.1f}"
        body.append([name, *_facts(trained.get(name)), f"{mean(tops[name]):.1f}{spread}", gain, better])
    header = [
        "start",
        "pictures seen",
        "epochs",
        "loss, first and last epoch",
        "k-NN, step 0 and end, %",
        "best top-1, %",
        "over untrained",
        "every seed above every untrained one",
    ]
    return f"{table(header, body)}\n\n{_note(read, len(tops['untrained']))}"


def _facts(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["", "", "", ""]
    loss, knn = (f"{row[first]:.3g} -> {row[last]:.3g}" for first, last in _PAIRS)
    return [f"{row['pictures']:,}", f"{row['epochs']:.1f}", loss, knn]


_PAIRS = (("loss_first", "loss_last"), ("knn_untrained", "knn"))


def _note(read: list[dict[str, Any]], seeds: int) -> str:
    config = read[0]["config"]
    how = f"{config['backbone']}, {config['image_size']} px, {config['epochs']} epochs of top and head, {seeds} seeds"
    return f"{how}; `python -m scripts.ssl_results CUB_200_2011`, {read[0]['date'][:10]}."


def chain() -> str:
    """Steps of SIESTA from the best bottom and from an untrained one."""
    rows = _measured("chain")
    if not rows:
        return _NOT_YET
    body = []
    for row in rows:
        figures = (row[f"{when}_top{k}"] for when in ("before", "after") for k in (1, 5))
        cells = ("" if value is None else f"{value:.1f}" for value in figures)
        body.append([row["start"], str(row["classes"]), *cells])
    header = ["start", "classes so far", "before sleep, top-1 %", "top-5 %", "after it, top-1 %", "top-5 %"]
    return f"{table(header, body)}\n\n`python -m scripts.ssl_results CUB_200_2011`, {rows[0]['date'][:10]}."
