"""What the check finds in damaged rows and files; a learner's own checks are tested with the learner."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.store import Store
from siesta.store.check import check_store
from siesta.store.generations import Generations
from tests.store.stores import execute

DAMAGE = [
    ("UPDATE codes SET codes = x'00112233' WHERE id = 7", ("sample", 7)),
    ("DELETE FROM codes WHERE id = 7", ("sample", 7)),
    ("DELETE FROM samples WHERE id = 7", ("sample", 7)),
    ("UPDATE classes SET stored = stored + 1 WHERE id = 2", ("class", 2)),
    ("UPDATE recent SET total = x'00' WHERE class_id = 2", ("sums", 2)),
    ("UPDATE settings SET value = '9' WHERE name = 'seed'", ("settings", None)),
    ("UPDATE generations SET report = '{' WHERE number = 1", ("report", 1)),
    ("UPDATE generations SET since = 'x' WHERE number = 1", ("generation", 1)),
    ("UPDATE in_use SET generation = 9", ("in use", None)),
    ("PRAGMA user_version = 0", ("header", None)),
    ("INSERT INTO rejected VALUES (7, 1, 0, x'00112233')", ("rejection", 7)),
]


def test_an_intact_store_has_no_findings(path: Path) -> None:
    assert check_store(path) == []


@pytest.mark.parametrize(("command", "expected"), DAMAGE, ids=[command for command, _ in DAMAGE])
def test_damaged_rows_are_found(path: Path, command: str, expected: tuple[str, int | None]) -> None:
    execute(path, command)
    findings = check_store(path)
    assert expected in [(finding.kind, finding.item) for finding in findings]
    assert all("\n" not in finding.words for finding in findings)


def test_an_edit_that_was_killed_before_it_renamed_its_files_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def die_after_the_commit(generations: Generations) -> None:
        calls.append(generations)
        if len(calls) > 1:  # the first call is before the edit
            raise KeyboardInterrupt

    store = Store.open(path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), store.sleeping():
        patch.setattr(Generations, "finish", die_after_the_commit)
        store.edits.merge("ant", "bee", lambda _, head: {"h": head["h"] + 1})
    store.close()
    assert list(path.rglob(".head.next"))
    assert check_store(path) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bottom.safetensors", ("constant", "bottom")), ("generations/000001/head.safetensors", ("generation", 1))],
)
def test_damaged_and_missing_files_are_found(path: Path, name: str, expected: tuple[str, int | str]) -> None:
    (path / name).write_bytes(b"garbage")
    assert [(finding.kind, finding.item) for finding in check_store(path)] == [expected]
    (path / name).unlink()
    assert [(finding.kind, finding.item) for finding in check_store(path)] == [expected]


def test_a_folder_without_a_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a siesta learner"):
        check_store(tmp_path)
