"""Integrity of a learner on disk: `check` finds damage, and `repair` keeps everything that is intact."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from siesta.errors import Damaged
from siesta.files import disk_errors
from siesta.head import Head
from siesta.head.kinds import DISCRIMINANT
from siesta.learner.sums import wrong_statistics, wrong_sums
from siesta.pipeline import NetworkEngines, Pipeline
from siesta.sleep.counted_statistics import counted_anew
from siesta.sleep.delta_sums import DeltaSums
from siesta.store import Generation, Snapshot, Store, header, require_learner, schema
from siesta.store.check import Finding, check_database, check_store
from siesta.store.repair import name_lost_class, repair_rows
from siesta.store.salvage import remove_leftovers, replace_database, salvage_database
from siesta.store.session import sleeper_lock, teacher_lock
from siesta.store.settings import write_settings
from siesta.store.tensor_files import replace_tensors

__all__ = ["Finding", "check", "repair"]

_BLOCKING = ("database", "settings", "sums", "in use", "generation", "report", "class", "statistics")
"""Kinds of findings that prevent the comparison with the head."""


def check(path: str | Path, *, full: bool = False) -> list[Finding]:
    """Return all damage of a learner; other processes may learn or sleep meanwhile.

    Args:
        path: The learner's directory, which is only read.
        full: Compute the sums of all classes again; otherwise of some classes, drawn at random.

    Returns:
        The findings, none if the learner is intact. Findings of the kind "cache" are harmless: what is damaged there
        can be created again.
    """
    path = Path(path).absolute()
    findings = check_store(path)
    if any(found.kind in _BLOCKING for found in findings):
        return findings
    with contextlib.closing(Store.open(path, "read")) as store, store.session.errors():
        findings += _compare_with_head(store.snapshot())
        if any(found.kind in _BLOCKING or found.kind in ("sample", "constant") for found in findings):
            return findings
        wrong = _wrong_sums(store, full)
        if wrong:  # or another process edited the learner meanwhile: compare again
            confirmed = _wrong_sums(store, full)
            wrong = [found for found in wrong if found in confirmed]
        return findings + wrong


def _wrong_sums(store: Store, full: bool) -> list[Finding]:
    snapshot = store.snapshot()
    return [*wrong_sums(store, snapshot, full=full), *wrong_statistics(store, snapshot, full=full)]


def _compare_with_head(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each class whose samples are neither in the head nor in the sums since the last sleep."""
    head = Head.from_state(snapshot.weights["head"])
    records = {record.id: record for record in snapshot.classes}
    counts = {recent.class_id: recent.count for recent in snapshot.recent}
    for class_id in sorted(set(head.class_ids.tolist()) - set(records)):
        yield Finding("class", f"class {class_id}: its name is lost", class_id)
    for class_id, record in records.items():
        known, since = head.at_last_sleep(class_id)[0], counts.get(class_id, 0)
        evicted = not (known or since or record.stored)  # all samples were evicted before the first sleep
        if record.taught != known + since and not evicted:
            message = f"{record.taught} samples taught, but {known} in the head and {since} since the last sleep"
            yield Finding("sums", f"class '{record.label}': {message}", class_id)


def repair(path: str | Path, *, full: bool = False) -> list[str]:
    """Repair a learner, keeping everything that is intact; no other process may learn or sleep meanwhile.

    Args:
        path: The learner's directory.
        full: Verify the sums of all classes, as `check` does.

    Returns:
        What was lost or changed, one line each; none if the learner was intact.

    Raises:
        Damaged: Something that the learner needs is lost; nothing was changed.
    """
    path = Path(path).absolute()
    require_learner(path)
    with contextlib.ExitStack() as locks, schema.database_errors(path), disk_errors(path):
        locks.callback(teacher_lock(path).release)
        sleep_lock = sleeper_lock(path)
        locks.callback(sleep_lock.release)
        remove_leftovers(path)
        with header.rebuild(path / schema.DATABASE) as rebuilt:
            findings = check(path, full=full)
            lines = ["rebuilt the header of store.sqlite"] if rebuilt else []
            lines += _repair_database(path, findings)
        sleep_lock.release()  # the next step takes it; no other process can sleep on a learner in this state
        lines += _repair_weights(path, findings)
    remaining = check(path, full=full)
    if remaining:
        raise Damaged(f"{path} is still damaged ({remaining[0].words}): restore it from a copy of the learner")
    return lines


def _repair_database(path: Path, findings: list[Finding]) -> list[str]:
    """Remove damaged rows and make the rest consistent, in one transaction; return what was lost."""
    if any(found.kind == "database" for found in findings):
        try:
            with salvage_database(path) as connection:
                found = check_database(connection, path)
                _require_essentials(path, connection, found)
                lines = repair_rows(connection, found)
                replace_database(path, connection)
        except sqlite3.OperationalError:  # the disk is full, the database is not damaged
            raise
        except sqlite3.DatabaseError as error:
            raise Damaged(f"{path} cannot be repaired ({error}): restore it from a copy of the learner") from error
        findings += found
        return ["store.sqlite was malformed: kept what could be read, the old one is store.sqlite.damaged", *lines]
    with _writing(path) as connection:
        _require_essentials(path, connection, findings)
        return repair_rows(connection, findings) if findings else []


def _writing(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(schema.connect(path / schema.DATABASE, read_only=False, synchronous="FULL"))


def _require_essentials(path: Path, connection: sqlite3.Connection, findings: Iterable[Finding]) -> None:
    """Raise `Damaged` if something is lost that cannot be restored from the rest."""
    reasons = [found.words for found in findings if found.kind in ("database", "settings", "constant")]
    damaged = {found.item for found in findings if found.kind == "generation"}
    kept = {row[0] for row in connection.execute("SELECT number FROM generations WHERE hashes != ''")}
    if not reasons and not kept - damaged:
        reasons = ["no generation of weights is intact"]
    if reasons:
        raise Damaged(f"{path} cannot be repaired ({'; '.join(reasons)}): restore it from a copy of the learner")


def _repair_weights(path: Path, findings: list[Finding]) -> list[str]:
    """Activate an intact generation with the samples since counted in; return what was changed."""
    with contextlib.closing(Store.open(path, "sleep")) as store:
        generation, lines = _choose_generation(store.generations.all())
        with store.sleeping():
            sums_are_right = not any(found.kind == "sums" for found in findings)
            lines += _activate(store, path, generation, sums_are_right)
            if any(found.kind == "cache" for found in findings):
                lines.append(_export_graphs_again(store, path))
            if store.settings.get("head") == DISCRIMINANT and store.statistics.number() is None:
                lines.append(_count_again(store))
        store.clean_up()
    return lines


def _count_again(store: Store) -> str:
    statistics = counted_anew(store, Pipeline.from_store(store), store.samples.newest())
    if statistics is not None:
        with store.session.transaction():
            store.statistics.replace(*statistics.stored())
    return "the statistics of the head were computed again from stored samples"


def _choose_generation(intact: list[Generation]) -> tuple[Generation, list[str]]:
    """Return the active generation, or else the newest that its own sleep accepted, and what changes by that."""
    in_use = [generation for generation in intact if generation.in_use]
    if in_use:
        return in_use[0], []
    accepted = [generation for generation in intact if (generation.report or {}).get("used", True)]
    chosen = (accepted or intact)[-1]
    return chosen, [f"generation {chosen.number} is in use now, and the samples taught since are counted in"]


def _activate(store: Store, path: Path, generation: Generation, sums_are_right: bool) -> list[str]:
    """Activate a generation with counts and sums that agree with its head; return what was changed."""
    weights = store.generations.read(generation)
    head = Head.from_state(weights["head"])
    with _writing(path) as connection, schema.Transaction(connection):
        lines = _name_classes(connection, head)
        consistent = _correct_counts(connection, head, generation)
    if consistent and sums_are_right:
        return lines
    store.swap.activate(generation.number, DeltaSums(Pipeline.from_store(store, top=weights["top"]).features, head))
    lines.append("the sums since the last sleep were computed again from stored samples")
    remaining = {recent.class_id for recent in store.classes.recent(record.id for record in store.classes.all())}
    remaining |= set(head.class_ids.tolist())
    lost = [record for record in store.classes.all() if record.id not in remaining]
    return lines + [f"class '{record.label}' has lost everything but its name" for record in lost]


def _name_classes(connection: sqlite3.Connection, head: Head) -> list[str]:
    named = {row[0] for row in connection.execute("SELECT id FROM classes")}
    return [name_lost_class(connection, class_id) for class_id in head.class_ids.tolist() if class_id not in named]


def _correct_counts(connection: sqlite3.Connection, head: Head, generation: Generation) -> bool:
    """Correct how many samples of each class were ever taught; return whether the sums agree with that.

    Where two counts differ, the smaller one that the stored samples allow is used, because it does the least harm.
    """
    sums = dict(connection.execute("SELECT class_id, count FROM recent")) if generation.in_use else {}
    consistent = generation.in_use
    for class_id, taught, stored in connection.execute("SELECT id, taught, stored FROM classes").fetchall():
        known = head.at_last_sleep(class_id)[0]
        (since,) = connection.execute(
            "SELECT count(*) FROM samples WHERE class_id = ? AND id > ?", (class_id, generation.since)
        ).fetchone()
        minimum = max(known + since, stored)
        candidates = [taught]
        if class_id in sums:
            candidates.append(known + sums[class_id])
        corrected = min((count for count in candidates if count >= minimum), default=minimum)
        connection.execute("UPDATE classes SET taught = ? WHERE id = ?", (corrected, class_id))
        consistent = consistent and (corrected == known + sums.get(class_id, 0) or not (known or since))
    return consistent


def _export_graphs_again(store: Store, path: Path) -> str:
    graphs = NetworkEngines(Pipeline.from_store(store).network).stored_graphs()
    sha256 = replace_tensors(path / "graphs.safetensors", graphs)
    settings = {**store.settings, "hashes": {**store.settings["hashes"], "graphs": sha256}}
    with _writing(path) as connection, schema.Transaction(connection):
        write_settings(connection, settings)
    return "graphs.safetensors was exported again"
