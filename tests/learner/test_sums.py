"""Sums of classes since the last sleep against the stored samples."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.learner import sums
from siesta.learner.integrity import check, repair
from siesta.store.schema import row_checksum
from tests.learner.damage import picture
from tests.small import create_small


def class_vectors(path: Path) -> list[list[float]]:
    with Siesta.open(path, read_only=True) as learner:
        vectors: list[list[float]] = learner.head.weights().tolist()
    return vectors


def falsify(path: Path) -> int:
    """Negate all sums, with checksums that fit; return how many there are."""
    with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        rows = connection.execute("SELECT class_id, total FROM recent").fetchall()
        for class_id, total in rows:
            data = (-np.frombuffer(total)).tobytes()
            values = (row_checksum(class_id, data), data, class_id)
            connection.execute("UPDATE recent SET checksum = ?, total = ? WHERE class_id = ?", values)
    return len(rows)


def test_a_sum_that_does_not_fit_the_samples_is_found_and_computed_again(path: Path, intact: Path) -> None:
    assert check(path, full=True) == []
    assert falsify(path) == 3
    assert class_vectors(path) != class_vectors(intact)
    found = check(path)
    assert {finding.kind for finding in found} == {"sums"} and "differs from that of its stored samples" in found[
        0
    ].words
    assert "the sums since the last sleep were computed again from stored samples" in repair(path)
    assert check(path, full=True) == []
    assert class_vectors(path) == class_vectors(intact)


def test_some_classes_are_compared_unless_all_are_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falsify(path)
    monkeypatch.setattr(sums, "_SAMPLES", 1)
    assert len(check(path)) == 1
    assert len(check(path, full=True)) == 3


def test_classes_with_evicted_samples_are_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "full.siesta"
    with create_small(path, memory="4 samples") as learner:
        learner.learn_many([picture(number) for number in range(9)], ["class 0", "class 1", "class 2"] * 3)
    assert check(path, full=True) == []
    falsify(path)
    assert len(check(path, full=True)) < 3


def test_more_samples_than_a_sum_counts_are_found(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE generations SET since = since - 1 WHERE number = 1")
    assert [finding.words for finding in check(path)] == [
        "class 'class 2': 1 stored samples since the last sleep, but 0 in its sum"
    ]
    repair(path)
    assert check(path, full=True) == []
