"""Markdown tables of the studies of heads, of variants of sleep and of tops over vectors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from scripts.measurement_tables import ROOT, Row, rows_of, table

__all__ = ["between_sleeps", "heads", "reject", "sleep_variants", "vector_tops"]

_CONFIG = ("dataset", "image_size", "steps", "updates", "seed")
_COLUMNS = 4  # of steps; of more, the first and the last are shown


def heads() -> str:
    """Return a table for each data set: the accuracy of each head by stage, and with fewer samples of new classes."""
    return "\n\n".join(_heads(rows) for _, rows in _by_config(_rows("studies/heads", "head_trials WORK")))


def _heads(rows: list[Row]) -> str:
    steps = rows[0]["config"]["steps"]
    header = ["head", "first step, awake", "... slept", f"step {steps}, awake", "... slept", "long-tailed"]
    header += ["one new class: old / new", "1 sample a class", "5 samples", "all", "AUROC of unknown"]
    cells = {(row["head"], row["stage"], row["samples"]): row for row in rows}
    body = [_head(name, cells, steps - 1) for name in dict.fromkeys(row["head"] for row in rows)]
    return f"{table(header, body)}\n\n{_note(rows, 'head_features` and `python -m scripts.head_trials')}"


def _head(name: str, cells: dict[tuple[str, str, str], Row], last: int) -> list[str]:
    """Return the line of a head, from rows by head, stage and samples."""
    stages = [("0-awake", "all"), ("0-slept", "all"), (f"{last}-awake", "all"), (f"{last}-slept", "all")]
    stages.append((f"{last}-slept", "long-tailed"))
    few = ("one new class", "1 of a new class", "5 of a new class", "all")
    return [
        name,
        *(_pair(cells.get((name, *stage))) for stage in stages),
        *(_pair(cells.get((name, "1-awake", samples)), "old_top1", "new_top1") for samples in few),
        _familiarity(cells[name, "1-slept", "all"]),
    ]


def sleep_variants() -> str:
    """Return a table for each data set: the accuracy of both heads before and after sleeps of each variant."""
    rows = _rows("studies/sleep_variants", "sleep_variants CUB_200_2011")
    return "\n\n".join(_sleep_variants(part) for _, part in _by_config(rows))


def _sleep_variants(rows: list[Row]) -> str:
    steps = rows[0]["config"]["steps"]
    shown = list(range(steps)) if steps <= _COLUMNS else [0, steps - 1]
    header = ["variant", *(f"step {number + 1}, awake -> slept" for number in shown), "top-5 after the last"]
    header += ["cosine softmax after the last"]
    cells = {(row["variant"], row["stage"]): row for row in rows}
    body = []
    for name in dict.fromkeys(row["variant"] for row in rows):
        pairs = [(cells[name, f"{number}-awake"], cells[name, f"{number}-slept"]) for number in shown]
        last = pairs[-1][1]
        gains = [f"{awake['discriminant_top1']:.1f} -> {slept['discriminant_top1']:.1f}" for awake, slept in pairs]
        body.append([name, *gains, f"{last['discriminant_top5']:.1f}", _pair(last, "cosine_top1", "cosine_top5")])
    return f"{table(header, body)}\n\n{_note(rows, 'sleep_variants')}"


def between_sleeps() -> str:
    """Return a table for each data set: accuracy on the classes of earlier steps, before and after each sleep."""
    rows = [
        row for row in _rows("studies/sleep_variants", "sleep_variants CUB_200_2011") if row["variant"] == "default"
    ]
    return "\n\n".join(_between_sleeps(part) for _, part in _by_config(rows))


def _between_sleeps(rows: list[Row]) -> str:
    cells = {row["stage"]: row["discriminant_old_top1"] for row in rows if "discriminant_old_top1" in row}
    body = []
    for number in range(1, rows[0]["config"]["steps"]):
        before, after = cells[f"{number}-awake"], cells[f"{number}-slept"]
        body.append([str(number + 1), f"{before:.1f}", f"{after:.1f}", f"{after - before:+.1f}"])
    header = ["sleep", "old classes before it, top-1 %", "after it", "difference"]
    return f"{table(header, body)}\n\n{_note(rows, 'sleep_variants')}"


def reject() -> str:
    """Return what was answered before and after wrong answers were rejected."""
    rows = _rows("studies/reject", "reject_trials CUB_200_2011")
    header = ["head", "rejected", "near-duplicates: the rejected label", "... the right one"]
    header += ["other images: right", "... score of the right label"]
    names = ("near_same_label", "near_right", "others_right", "others_score")
    body = [
        [f"{row['head']}, {row['stage']}", str(row["rejected"])]
        + [f"{row[name][0]:.1f} -> {row[name][1]:.1f} %" for name in names]
        for row in rows
    ]
    config, dates = rows[0]["config"], " and ".join(sorted({row["date"][:10] for row in rows}))
    updates = max(row["config"]["updates"] for row in rows)
    note = f"{config['classes']} classes of {config['dataset']}, 15 images each"
    note += f", slept: {updates:,} updates" if updates else ""
    return f"{table(header, body)}\n\n{note}; `python -m scripts.reject_trials`, {dates}."


def vector_tops() -> str:
    """Return a table of accuracies before and after a sleep, for each data set, head, number of blocks and rate."""
    rows = _rows("studies/vector_tops", "vector_tops --vectors chatterbot=FILE.npz")
    settings, body = _by_settings(rows), []
    for key, trials in settings.items():
        pairs = (("awake_val", "slept_val"), ("awake_test", "slept_test"))
        means = [[sum(trial[name] for trial in trials) / len(trials) for name in pair] for pair in pairs]
        body.append([*map(str, key), *(f"{awake:.1f} -> {slept:.1f}" for awake, slept in means)])
    header = ["data", "head", "blocks", "rate", "val, awake -> slept, top-1 %", "test"]
    seeds = len(next(iter(settings.values())))
    dates = " and ".join(sorted({row["date"][:10] for row in rows}))
    sizes = {row["config"]["dataset"]: f"{row['learned']:,} learned and {row['tested']:,} tested" for row in rows}
    facts = "; ".join(f"{name}: {size}" for name, size in sizes.items())
    return f"{table(header, body)}\n\nMeans of {seeds} seeds. {facts}. `python -m scripts.vector_tops`, {dates}."


def _by_settings(rows: list[Row]) -> dict[tuple[object, ...], list[Row]]:
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row["config"][name] for name in ("dataset", "head", "layers", "lr")), []).append(row)
    return dict(sorted(found.items(), key=lambda item: tuple(map(str, item[0]))))


def _rows(name: str, command: str) -> list[Row]:
    if not (ROOT / "results" / f"{name}.jsonl").exists():
        raise SystemExit(f"results/{name}.jsonl is missing: run python -m scripts.{command}")
    return rows_of(name)


def _by_config(rows: list[Row]) -> Iterator[tuple[tuple[object, ...], list[Row]]]:
    def key(row: Row) -> tuple[str, ...]:
        return tuple(str(row["config"][name]) for name in _CONFIG)

    for found, part in groupby(sorted(rows, key=key), key):
        yield found, list(part)


def _pair(row: Row | None, first: str = "top1", second: str = "top5") -> str:
    return "-" if row is None else f"{row[first]:.1f} / {row[second]:.1f}"


def _familiarity(row: Row) -> str:
    """Return the AUROC of the largest probability and, where the head has one, of its relative Mahalanobis distance."""
    names = ("auroc_softmax", "auroc_relative_mahalanobis")
    return " / ".join(f"{row[name]:.1f}" for name in names if name in row)


def _note(rows: list[Row], script: str) -> str:
    config = rows[0]["config"]
    parts = [f"{config['image_size']} px", f"{config['steps']} steps", f"{config['updates']:,} updates a sleep"]
    dates = " and ".join(sorted({row["date"][:10] for row in rows}))
    return f"{config['dataset']}, {', '.join(parts)}, seed {config['seed']}; `python -m scripts.{script}`, {dates}."
