"""What a crash leaves, computed from a journal."""

from __future__ import annotations

import pytest

from tests.faults.journal import Crash, Tree, kills, power_cuts
from tests.faults.shim import Record

BEFORE: Tree = {"a": b"old"}


def change(kind: str, name: str, data: bytes = b"", offset: int = 0) -> Record:
    return Record(kind, name, offset, data)


REPLACED = [  # as `replace_file` does it
    change("C", ".a.partial"),
    change("W", ".a.partial", b"new!"),
    change("S", ".a.partial"),
    change("R", ".a.partial", b"a"),
    change("S", ""),
    change("A", ""),
]


def trees(crashes: list[Crash]) -> list[Tree]:
    return [crash.tree for crash in crashes]


def test_a_kill_leaves_each_prefix_and_half_of_a_write() -> None:
    assert trees(list(kills(BEFORE, REPLACED))) == [
        BEFORE,
        {"a": b"old", ".a.partial": b""},
        {"a": b"old", ".a.partial": b"ne"},
        {"a": b"old", ".a.partial": b"new!"},
        {"a": b"new!"},
    ]


def test_a_power_cut_leaves_one_of_the_two_contents_of_a_file_that_is_replaced_with_syncs() -> None:
    for crash in power_cuts(BEFORE, REPLACED, seeds=20):
        assert crash.tree["a"] in ((b"new!",) if crash.acknowledged else (b"old", b"new!"))


def test_without_a_sync_the_new_name_may_survive_and_its_bytes_may_not() -> None:
    unsynced = [record for record in REPLACED if record.kind != "S"]
    found = trees(list(power_cuts(BEFORE, unsynced, seeds=20)))
    assert {"a": b""} in found
    assert {"a": b"old"} in found
    assert {"a": b"new!"} in found


@pytest.mark.parametrize("synced", [True, False])
def test_unsynced_writes_survive_in_any_order(synced: bool) -> None:
    journal = [change("W", "a", b"X" * 512, 0), change("W", "a", b"Y" * 512, 512)]
    journal += [change("S", "a")] if synced else []
    last = [
        crash.tree["a"] for crash in power_cuts(BEFORE, [*journal, change("A", "")], seeds=40) if crash.acknowledged
    ]
    whole = b"X" * 512 + b"Y" * 512
    assert set(last) == {whole} if synced else {b"old", whole, b"old" + bytes(509) + b"Y" * 512} <= set(last)


def test_folders_move_with_what_is_in_them_and_files_can_be_cut_linked_and_removed() -> None:
    journal = [
        change("D", "new.partial"),
        change("C", "new.partial/x"),
        change("W", "new.partial/x", b"12345"),
        change("R", "new.partial", b"new"),
        change("T", "new/x", offset=2),
        change("L", "new/x", b"y"),
        change("U", "a"),
    ]
    *_, last = kills(BEFORE, journal)
    assert last.tree == {"new": None, "new/x": b"12", "y": b"12"}


def test_the_shared_memory_of_sqlite_is_left_out() -> None:
    journal = [change("C", "s-shm"), change("W", "s-shm", b"x"), change("A", "")]
    assert all(tree == BEFORE for tree in trees([*kills(BEFORE, journal), *power_cuts(BEFORE, journal, 2)]))
