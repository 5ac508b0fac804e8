"""Repair of damaged rows; sums and heads are repaired by the learner and tested there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from siesta.store.check import check_database, check_store
from siesta.store.repair import name_lost_class, repair_rows
from tests.store.stores import execute


def repair(path: Path) -> list[str]:
    with closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        return repair_rows(connection, check_database(connection, path))


def test_nothing_is_changed_where_nothing_is_damaged(path: Path) -> None:
    assert repair(path) == []


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("UPDATE codes SET codes = x'00112233' WHERE id = 7", "removed sample 7: it is damaged"),
        ("UPDATE classes SET stored = stored + 1 WHERE id = 2", "class 'bee' has lost 1 of its"),
        ("UPDATE samples SET slot = slot + 10 WHERE class_id = 2", "corrected the counts of class 'bee'"),
        ("DELETE FROM classes WHERE id = 2", "class 2 was damaged: it is called 'lost class 2' now"),
        ("UPDATE generations SET report = '{' WHERE number = 1", "the report of the sleep that made generation 1"),
        ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'samples'", "set the newest id of samples to 7"),
    ],
)
def test_damaged_rows_are_repaired_and_reported(path: Path, command: str, line: str) -> None:
    execute(path, command)
    assert any(found.startswith(line) for found in repair(path))
    assert check_store(path) == [] or {finding.kind for finding in check_store(path)} == {"sums"}


def test_a_lost_class_gets_a_label_that_no_other_class_has(path: Path) -> None:
    execute(
        path, "UPDATE classes SET label = 'lost class 2' WHERE id = 1", "UPDATE classes SET label = '' WHERE id = 2"
    )
    with closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        assert "'lost class 2 (2)'" in name_lost_class(connection, 2)
