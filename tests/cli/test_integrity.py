"""`siesta check` and `siesta repair`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.cli.conftest import ODD_LABELS
from tests.cli.running import assert_refused, result_of, run


def test_check_and_repair_report_an_intact_learner(taught_copy: Path) -> None:
    assert run("check", taught_copy).stdout == "no damage found\n"
    assert run("repair", taught_copy).stdout == "no damage found: nothing to repair\n"


def test_check_names_damage_and_repair_removes_it(taught_copy: Path) -> None:
    connection = sqlite3.connect(taught_copy / "store.sqlite", isolation_level=None)
    connection.execute("UPDATE codes SET codes = x'00' WHERE id = 1")
    connection.close()
    done = run("check", taught_copy)
    assert done.returncode == 4
    finding, advice = done.stdout.splitlines()
    assert "sample 1" in finding and advice == f"To keep everything that is intact: siesta repair {taught_copy}"
    assert result_of("check", taught_copy, code=4) == [{"kind": "sample", "words": finding, "item": 1}]
    done = run("repair", taught_copy)
    assert done.returncode == 0
    removed, lost = done.stdout.splitlines()
    assert "sample 1" in removed and f"'{ODD_LABELS[0]}'" in lost and "1 of its 3 samples" in lost
    assert result_of("check", taught_copy) == []


def test_check_and_repair_refuse_what_they_cannot_handle(taught_copy: Path, tmp_path: Path) -> None:
    for command in ("check", "repair"):
        assert_refused(3, "there is no learner", command, tmp_path / "nothing")
    file = taught_copy / "bottom.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    done = run("check", taught_copy)
    assert (done.returncode, done.stdout.splitlines()[0]) == (4, "bottom.safetensors is damaged")
    assert_refused(4, "cannot be repaired", "repair", taught_copy, "--json")
