"""Settings and their checksum."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from siesta.errors import Damaged
from siesta.store import Store
from siesta.store.schema import FORMAT
from tests.store.stores import (
    everything,
    execute,
    is_one_line,
)


@pytest.mark.parametrize("statement", ["UPDATE settings SET value = '{'", "DELETE FROM settings", "DROP TABLE samples"])
def test_a_database_without_its_contents_is_damaged(path: Path, statement: str) -> None:
    execute(path, statement)
    with pytest.raises(Damaged) as caught:
        everything(Store.open(path))
    assert is_one_line(caught.value)


def test_the_format_is_repeated_beside_the_settings(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.sqlite")) as connection:
        assert connection.execute("SELECT value FROM settings WHERE name = 'format'").fetchone() == (str(FORMAT),)
    with closing(Store.open(path, "read")) as store:
        assert "format" not in store.settings
