"""The care of a learner on disk: whether it is whole, and what can be saved when it is not."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from siesta.catch_up import CatchUp
from siesta.errors import BadInput, Damaged
from siesta.head import Head
from siesta.pipeline import Pipeline, graphs
from siesta.store import Generation, Snapshot, Store, files, schema
from siesta.store.check import Finding, check_database, check_store
from siesta.store.repair import mend, name_lost_class
from siesta.store.salvage import put_in_place, remove_leftovers, salvaged
from siesta.store.settings import write_settings
from siesta.store.store import sleeper_lock, teacher_lock

__all__ = ["Finding", "check", "repair"]

_ENOUGH = ("database", "settings", "sums", "in use", "generation", "report", "class")


def check(path: str | Path) -> list[Finding]:
    """All that is damaged of the learner at `path`, read-only and while others teach or sleep; nothing if it is whole.

    Args:
        path: Its folder.

    Returns:
        Findings; those of the kind "cache" hurt nobody, for what is damaged there can be made again.
    """
    path = Path(path).absolute()
    findings = check_store(path)
    if any(found.kind in _ENOUGH for found in findings):
        return findings
    store = Store.open(path, "read")
    with contextlib.closing(store):
        return findings + list(_against_head(store.snapshot()))


def _against_head(snapshot: Snapshot) -> Iterator[Finding]:
    """What was ever taught of a class is in its head, or in the sums of what came since."""
    head = Head.from_state(snapshot.weights["head"])
    names = {record.id: record for record in snapshot.classes}
    counts = {recent.class_id: recent.count for recent in snapshot.recent}
    for class_id in sorted(set(head.class_ids.tolist()) - set(names)):
        yield Finding("class", f"class {class_id}: its name is lost", class_id)
    for class_id, record in names.items():
        known, since = head.known(class_id)[0], counts.get(class_id, 0)
        forgotten = not (known or since or record.stored)  # all of it was evicted before any sleep saw it
        if record.taught != known + since and not forgotten:
            words = f"{record.taught} samples taught, but {known} known asleep and {since} since"
            yield Finding("sums", f"class '{record.label}': {words}", class_id)


def repair(path: str | Path) -> list[str]:
    """Keeps what is whole of a learner, while nobody else teaches it or sleeps.

    Args:
        path: Its folder.

    Returns:
        What was lost or changed, line by line; nothing if all was whole.

    Raises:
        Damaged: What it cannot be without is damaged; nothing was changed.
    """
    path = Path(path).absolute()
    if not (path / schema.DATABASE).is_file():
        raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
    with contextlib.ExitStack() as held, schema.database_errors(path), files.disk_errors(path):
        held.callback(teacher_lock(path).release)
        asleep = sleeper_lock(path)
        held.callback(asleep.release)
        findings = check(path)
        remove_leftovers(path)
        lines = _mended(path, findings)
        asleep.release()  # what follows takes it as every sleeper does; a learner in this state puts nobody to sleep
        lines += _with_weights(path, findings)
    left = check(path)
    if left:
        raise Damaged(f"{path} is not whole yet ({left[0].words}): restore it from a copy of the learner")
    return lines


def _mended(path: Path, findings: list[Finding]) -> list[str]:
    """Rows that fit each other; all or nothing is changed."""
    if any(found.kind == "database" for found in findings):
        try:
            with salvaged(path) as connection:
                found = check_database(connection, path)
                _give_up_without(path, connection, found)
                lines = mend(connection, found)
                put_in_place(path, connection)
        except sqlite3.OperationalError:  # a full disk, not a damaged one
            raise
        except sqlite3.DatabaseError as error:
            raise Damaged(f"{path} cannot be repaired ({error}): restore it from a copy of the learner") from error
        findings += found
        return ["store.sqlite was malformed: kept what could be read, the old one is store.sqlite.damaged", *lines]
    with _writing(path) as connection:
        _give_up_without(path, connection, findings)
        return mend(connection, findings) if findings else []


def _writing(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(schema.connect(path / schema.DATABASE, read_only=False, synchronous="FULL"))


def _give_up_without(path: Path, connection: sqlite3.Connection, findings: Iterable[Finding]) -> None:
    """Refuses where something is damaged that nothing can stand in for."""
    words = [found.words for found in findings if found.kind in ("database", "settings", "constant")]
    damaged = {found.item for found in findings if found.kind == "generation"}
    kept = {row[0] for row in connection.execute("SELECT number FROM generations WHERE hashes != ''")}
    if not words and not kept - damaged:
        words = ["no generation of weights is whole"]
    if words:
        raise Damaged(f"{path} cannot be repaired ({'; '.join(words)}): restore it from a copy of the learner")


def _with_weights(path: Path, findings: list[Finding]) -> list[str]:
    """A generation that is whole in use, with what was taught since it was made counted in."""
    with contextlib.closing(Store.open(path, "sleep")) as store:
        generation, lines = _chosen(store.generations.all())
        with store.sleeping():
            lines += _fitted(store, path, generation)
            if any(found.kind == "cache" for found in findings):
                lines.append(_make_graphs(store, path))
        store.tidy()
    return lines


def _chosen(whole: list[Generation]) -> tuple[Generation, list[str]]:
    """The generation in use, or else the newest that was found good when it was made."""
    in_use = [generation for generation in whole if generation.in_use]
    if in_use:
        return in_use[0], []
    good = [generation for generation in whole if (generation.report or {}).get("used", True)]
    chosen = (good or whole)[-1]
    return chosen, [f"generation {chosen.number} is in use now, what was taught since it was made is counted in"]


def _fitted(store: Store, path: Path, generation: Generation) -> list[str]:
    """Counts and sums that fit the head of a generation, which is in use afterwards."""
    weights = store.generations.read(generation)
    head = Head.from_state(weights["head"])
    with _writing(path) as connection, schema.transaction(connection):
        lines = _name_classes(connection, head)
        fits = _count_taught(connection, head, generation)
    if fits:
        return lines
    store.use_generation(generation.number, CatchUp(Pipeline.of(store, top=weights["top"]).features, head))
    lines.append("the sums of what was taught since the last sleep were made again from stored samples")
    seen = {recent.class_id for recent in store.recent(record.id for record in store.classes())}
    seen |= set(head.class_ids.tolist())
    gone = [record for record in store.classes() if record.id not in seen]
    return lines + [f"class '{record.label}' is lost but for its name" for record in gone]


def _name_classes(connection: sqlite3.Connection, head: Head) -> list[str]:
    named = {row[0] for row in connection.execute("SELECT id FROM classes")}
    return [name_lost_class(connection, class_id) for class_id in head.class_ids.tolist() if class_id not in named]


def _count_taught(connection: sqlite3.Connection, head: Head, generation: Generation) -> bool:
    """Makes right how much was ever taught of each class; whether the sums fit that.

    Of two counts that differ the smaller one is believed that the stored samples allow: it does the least harm.
    """
    sums = dict(connection.execute("SELECT class_id, count FROM recent")) if generation.in_use else {}
    fits = generation.in_use
    for class_id, taught, stored in connection.execute("SELECT id, taught, stored FROM classes").fetchall():
        known = head.known(class_id)[0]
        (since,) = connection.execute(
            "SELECT count(*) FROM samples WHERE class_id = ? AND id > ?", (class_id, generation.since)
        ).fetchone()
        least, told = max(known + since, stored), [taught]
        if class_id in sums:
            told.append(known + sums[class_id])
        right = min((count for count in told if count >= least), default=least)
        connection.execute("UPDATE classes SET taught = ? WHERE id = ?", (right, class_id))
        fits = fits and (right == known + sums.get(class_id, 0) or not (known or since))
    return fits


def _make_graphs(store: Store, path: Path) -> str:
    pipeline = Pipeline.of(store, engine="torch")
    partial = path / ".graphs.partial"
    sha256 = files.write_tensors(partial, graphs(pipeline.backbone, pipeline.image_size))
    partial.replace(path / "graphs.safetensors")
    settings = {**store.settings, "hashes": {**store.settings["hashes"], "graphs": sha256}}
    with _writing(path) as connection, schema.transaction(connection):
        write_settings(connection, settings)
    return "graphs.safetensors was made again"
