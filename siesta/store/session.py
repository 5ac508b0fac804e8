"""An open store: its connection, its locks, and what may be written through it.

One process teaches a store and one process, maybe another one, changes its weights; any number of processes read.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from siesta.errors import Applied, BadInput, DiskRefused, SiestaError
from siesta.files import Lock, disk_errors, is_full
from siesta.store import schema
from siesta.store.migration import migrate

__all__ = ["DURABILITIES", "Access", "Session", "sleeper_lock", "teacher_lock"]

Access = Literal["read", "teach", "sleep"]
"""What a process may do with a store; "teach" includes all, "sleep" changes weights only."""

DURABILITIES: dict[str, str] = {"process": "NORMAL", "power": "FULL"}
"""What committed data survives (the end of the process, or a loss of power), and SQLite's `synchronous` for it."""

_teachers: weakref.WeakValueDictionary[Path, Session] = weakref.WeakValueDictionary()
"""The sessions in which this process teaches, by folder."""


def teacher_lock(path: Path) -> Lock:
    """Take the lock for teaching the store at `path`; a session in which this process teaches it is closed first.

    Raises:
        Busy: Another process holds the lock.
    """
    with disk_errors(path):
        previous = _teachers.get(path.resolve())
        if previous is not None:
            previous.close()
        return Lock(path / "lock", lambda pid: f"{path} is being taught by process {pid}: wait for it or stop it")


def sleeper_lock(path: Path, timeout: float = 0.0) -> Lock:
    """Take the lock for changing the weights of the store at `path`.

    Args:
        path: The folder of the learner.
        timeout: Seconds to wait for another process to release the lock.

    Raises:
        Busy: Another process still holds it.
    """

    def message(pid: str) -> str:
        return (
            f"{path} is asleep, or being changed, in process {pid}: wait for it, or wake it with `siesta wake {path}`"
        )

    with disk_errors(path):
        return Lock(path / "sleep.lock", message, timeout)


class Session:
    """An open connection to the database of a store, and the right to read it, to teach it or to change its weights.

    Attributes:
        path: The folder of the learner; None for a store in memory.
        connection: The connection to its database.
    """

    def __init__(
        self, path: Path | None, connection: sqlite3.Connection, access: Access, lock: Lock | None = None
    ) -> None:
        self.path = path
        self.connection = connection
        self._access = access
        self._lock = lock
        self._sleeping = False
        self._file_id = self._current_file_id()

    @classmethod
    def open(cls, path: Path, access: Access, durability: str) -> Session:
        """Connect to the store at `path`, with the teacher's lock if `access` is "teach"."""
        lock = teacher_lock(path) if access == "teach" else None
        try:
            with schema.database_errors(path):
                session = cls(path, _open_database(path, access, durability), access, lock)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        if access == "teach":
            _teachers[path.resolve()] = session
        return session

    def close(self) -> None:
        """Close the connection and release the teacher's lock."""
        self.connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self.path is not None and _teachers.get(self.path.resolve()) is self:
            del _teachers[self.path.resolve()]  # the next teacher may be another thread and must not close it again

    @property
    def teaches(self) -> bool:
        """Whether samples may be added, so that no other process adds any."""
        return self._access == "teach"

    def check_teaches(self) -> None:
        """Raise `BadInput` unless samples may be added and edited."""
        self._check_writable()
        if not self.teaches:
            raise BadInput(f"{self.path} was opened with to_sleep=True: open it without that to learn")

    def _check_writable(self) -> None:
        if self._access == "read":
            raise BadInput(f"{self.path} cannot be written to: it was opened read-only")

    def check_sleeping(self) -> None:
        """Raise `BadInput` outside of `sleeping`."""
        if not self._sleeping:
            raise BadInput("weights may be changed only inside `with store.sleeping()`")

    @contextmanager
    def sleeping(self, timeout: float = 0.0) -> Iterator[None]:
        """Hold the sleeper's lock: inside, generations may be added and activated, while teaching goes on.

        Args:
            timeout: Seconds to wait for another process to release the lock.

        Raises:
            Busy: Another process still holds it.
        """
        self._check_writable()
        lock = None if self.path is None else sleeper_lock(self.path, timeout)
        self._sleeping = True
        try:
            yield
        finally:
            self._sleeping = False
            if lock is not None:
                lock.release()

    def _current_file_id(self) -> tuple[int, int] | None:
        """Return device and inode of the database file; None if there is no file."""
        if self.path is None:
            return None
        try:
            facts = (self.path / schema.DATABASE).stat()
        except OSError:
            return None
        return facts.st_dev, facts.st_ino

    def check_place(self) -> None:
        """Raise `DiskRefused` if the folder was removed, moved or replaced: what is written now would be lost."""
        if self._current_file_id() != self._file_id:
            raise DiskRefused(f"{self.path} was removed, moved or replaced while it was open: open it anew")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the database and of the disk into a `SiestaError` about this store."""
        if self.path is None:
            yield
            return
        with schema.database_errors(self.path), disk_errors(self.path):
            yield

    @contextmanager
    def after_commit(self, sample: int | None = None) -> Iterator[None]:
        """Turn errors of the block, which follows the commit of a change, into `Applied`.

        Args:
            sample: Id of the sample that the change has made, if it made one.
        """
        try:
            yield
        except (OSError, sqlite3.Error, SiestaError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            if self.path is not None and is_full(self.path):  # SQLite may call it an I/O error
                reason = os.strerror(errno.ENOSPC)
            made = "" if sample is None else f" (the sample has the new id {sample})"
            raise Applied(
                f"the change was applied{made}, but the disk refused to clear the old bytes ({reason}): check the disk "
                "or free space; they are cleared when the learner is opened to learn, so do not repeat the change",
                sample,
            ) from error

    def transaction(self, *, synced: bool = False) -> schema.Transaction:
        """Return a context that commits everything that its block writes, or nothing of it.

        Args:
            synced: Sync the commit to disk at each durability, because files that the rows of before refer to are
                replaced or removed next.
        """
        return schema.Transaction(self.connection, self.errors, synced=synced)

    def roll_back_leftover(self) -> None:
        """Roll back a transaction that an interrupt left open."""
        if self.connection.in_transaction:
            with self.errors():
                self.connection.execute("ROLLBACK")

    def data_version(self) -> int:
        """Return a number that changes whenever another process has changed the database."""
        with self.errors():
            (number,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(number)


def _open_database(path: Path, access: Access, durability: str) -> sqlite3.Connection:
    """Connect to a store; a database in an older format is migrated first."""
    connection = schema.connect(path / schema.DATABASE, access == "read", DURABILITIES[durability])
    try:
        schema.refuse_others(connection, path)
        version = schema.format_of_tables(connection)
        if version is None:
            raise sqlite3.DatabaseError("the description of the tables is damaged")
        if version < schema.FORMAT:
            if access == "read":
                connection.close()
                _open_database(path, "sleep", durability).close()
                return _open_database(path, "read", durability)
            migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection
