"""Deleted rows leave no bytes in the files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import DiskRefused
from siesta.store import Store
from siesta.store.secure_delete import SecureDelete
from tests.store.stores import make_store, sample, weights


def holds(path: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_a_forgotten_class_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = make_store(path, capacity=50, code_bytes=40)
    store.add([sample(label, number, 40) for number, label in enumerate(["ant", "bee"] * 20)])
    forgotten, kept = sample("ant", 0, 40).codes, sample("bee", 1, 40).codes
    assert holds(path, forgotten) and holds(path, kept)
    with store.sleeping():
        store.edits.forget_class("ant", lambda _, head: head)
    assert not holds(path, forgotten) and holds(path, kept)
    assert not (path / "to_be_wiped").exists()
    assert len(store) == 20
    store.close()


def test_a_failed_clearing_stays_pending_and_is_done_by_the_next_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "s")
    store.add([sample("ant", 1), sample("bee", 2)])

    def full(_: SecureDelete) -> None:
        raise DiskRefused("full")

    with monkeypatch.context() as patch, pytest.raises(DiskRefused), store.sleeping():
        patch.setattr(SecureDelete, "finish", full)
        store.edits.forget_class("ant", lambda _, head: head)
    assert [record.label for record in store.classes.all()] == ["bee"]
    with closing(sqlite3.connect(tmp_path / "s" / "store.sqlite")) as connection:
        assert SecureDelete(tmp_path / "s", connection).pending
    store.close()
    Store.open(tmp_path / "s").close()
    assert not (tmp_path / "s" / "to_be_wiped").exists()


def test_dropped_thumbnails_are_in_no_file(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", capacity=500)
    store.add([sample("ant", 1)])
    image = np.random.default_rng(0).bytes(60)
    store.keep_thumbnails({1: image})
    assert holds(tmp_path / "s", image)
    store.drop_thumbnails()
    assert not holds(tmp_path / "s", image)
    assert store.generations.active() == 0 and weights(0).keys() == store.snapshot().weights.keys()
    store.close()
