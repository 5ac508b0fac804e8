"""Markdown texts on injected faults, soaks, hostile clients of a service, and advisories for packages."""

from __future__ import annotations

from scripts.measurement_tables import Row, rows_of, table
from siesta.errors import BadInput

__all__ = ["audit", "faults", "hostile_clients", "soak"]

_KINDS = {
    "kill": "killed after each change of a file, and in the middle of each write",
    "power cut": "power cut before each sync and at each acknowledgement, with unsynced writes lost",
    "refused call": "a full disk, or an I/O error, at each read, write, sync, rename and removal",
    "damage": "a flipped bit, or a file cut short",
}


def _rows_of(bench: str, command: str = "python -m tests.faults --record") -> list[Row]:
    """Return the rows of a bench, which a command records."""
    rows = [row for row in rows_of("faults") if row["bench"] == bench]
    if not rows:
        raise BadInput(f"results/faults.jsonl has no row of '{bench}': run `{command}`")
    return rows


def faults() -> str:
    """Return the numbers of points that were explored, and how many of them ended wrong."""
    body: list[list[str]] = []
    shown: list[Row] = []
    for bench, words in _KINDS.items():
        parts = {row["config"]["part"]: row for row in _rows_of(bench)}  # the newest of each part
        shown += parts.values()
        points, wrong = (sum(row[name] for row in parts.values()) for name in ("points", "wrong"))
        body.append([words, ", ".join(map(_part, parts.values())), f"{points:,}", f"{wrong:,}"])
    days = sorted({row["date"][:10] for row in shown})
    damaged = {name: sum(row.get(name, 0) for row in shown) for name in ("harmless", "repaired", "refused")}
    note = (
        f"Of the damaged learners {damaged['harmless']:,} were as before, {damaged['repaired']:,} were repaired, and "
        f"{damaged['refused']:,} could not be, which `repair` said. `python -m tests.faults --record`, every point "
        f"unless a share is given, {' and '.join(days)}, {shown[0]['machine']['cores']} cores."
    )
    return f"{table(['fault', 'during or in', 'points', 'lost or wrong'], body)}\n\n{note}"


def _part(row: Row) -> str:
    every = row["config"]["every"]
    return str(row["config"]["part"]) + (f" (one of {every})" if every > 1 else "")


def soak() -> str:
    """Return what the last soak did."""
    row = _rows_of("soak", "python -m tests.faults.soak")[-1]
    growth = "; ".join(
        f"{name}: {usage['memory'] / 1e6:+.1f} MB and {usage['files']:+g} open files"
        for name, usage in row["growth"].items()
    )
    operations = sum(row["operations"].values())
    return (
        f"In {row['seconds'] / 60:.0f} minutes: {operations:,} operations, {row['kills']:,} kills, "
        f"{row['kills_in_operation']:,} of them within an operation, {row['predictions']:,} predictions by a second "
        f"process, {len(row['faults'])} faults. Growth from the second quarter to the last ({growth}). "
        f"`{row['command']}`, {row['date'][:10]}."
    )


def hostile_clients() -> str:
    """Return what a service under hostile clients took."""
    row = _rows_of("hostile clients", "python -m tests.faults.clients")[-1]
    return (
        f"Two PNG images of 49 megapixels at once, {row['config']['bodies']} bodies that never end and "
        f"{row['config']['headers']} headers that never end: {row['memory'] / 1e6:.0f} MB of memory at the peak, and "
        f"{row['seconds']:.2f} s for the slowest of {row['requests']} other requests. `{row['command']}`, "
        f"{row['date'][:10]}."
    )


def audit() -> str:
    """Return which pinned packages have advisories."""
    row = rows_of("audit")[-1]
    covered = row["packages"] - len(row["not_covered"])
    known = "; ".join(f"{pin}: {', '.join(ids)}" for pin, ids in row["advisories"].items()) or "none"
    return (
        f"Advisories for the {covered} of {row['packages']} pinned versions that PyPI's JSON covers: {known}. "
        f"Not covered, to be looked up by hand at https://osv.dev: {', '.join(row['not_covered']) or 'none'}. "
        f"`{row['command']}`, {row['date'][:10]}."
    )
