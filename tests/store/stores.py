"""Stores that the tests of this folder make, and what can be seen of them."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.store import NewSample, Store
from siesta.store.eviction import OVERHEAD_BYTES

CODE_BYTES = 4


WIDTH = 3


SAMPLE_BYTES = CODE_BYTES + OVERHEAD_BYTES


LABELS = ["ant", "bee", "cat"]


FORKSERVER = multiprocessing.get_context("forkserver")


FORKSERVER.set_forkserver_preload(["siesta.learner"])  # imported once for all children


def make_store(
    path: Path | None = None,
    capacity: int = 5,
    seed: int = 0,
    code_bytes: int = CODE_BYTES,
    held_out: bool = False,
) -> Store:
    return Store.create(
        path,
        settings={
            "code_bytes": code_bytes,
            "memory_bytes": capacity * (code_bytes + OVERHEAD_BYTES) + 7,
            "seed": seed,
            "held_out": held_out,
        },
        constants={"bottom": {"w": np.arange(4.0)}},
        generation=weights(0),
    )


def weights(number: int) -> dict[str, dict[str, npt.NDArray[Any]]]:
    return {"top": {"t": np.full((2, 2), float(number))}, "head": {"h": np.array([number])}}


class NoSums:
    """Sums for a sleep during which nothing is taught."""

    def add(self, *_: object) -> None:
        raise AssertionError("something was taught meanwhile")

    def totals(self, *_: object) -> list[tuple[int, int, npt.NDArray[np.float64]]]:
        return []

    def statistics(self) -> None:
        return None


def swap(
    store: Store, tensors: Mapping[str, Mapping[str, npt.NDArray[Any]]], rehearsed: npt.NDArray[np.int64], report: Any
) -> None:
    """Activate new weights, as a sleep does during which nothing is taught."""
    with store.sleeping():
        number = store.generations.add(tensors, store.row_snapshot().newest, report)
        store.swap.activate(number, NoSums(), rehearsed)


def sample(label: str, number: int, code_bytes: int = CODE_BYTES, key: int | None = None) -> NewSample:
    """Return sample `number`, with codes and a feature of its own."""
    rng = np.random.default_rng(number)
    return NewSample(label, rng.bytes(code_bytes), rng.standard_normal(WIDTH).astype(np.float32), key)


def everything(store: Store) -> tuple[Any, ...]:
    """Return everything that can be seen of the samples and classes of a store, as one comparable value."""
    memory = store.samples.memory()
    order = np.argsort(memory.ids)
    present, codes = store.samples.get(memory.ids[order])
    assert present.all()
    columns = (memory.ids, memory.classes, memory.rehearsed)
    recent = [
        (entry.class_id, entry.label, entry.count, entry.total.tobytes())
        for entry in store.classes.recent(record.id for record in store.classes.all())
    ]
    return (
        *(column[order].tolist() for column in columns),
        codes.tobytes(),
        sorted(memory.new_classes.tolist()),
        store.classes.all(),
        recent,
        len(store),
    )


def execute(path: Path, *commands: str) -> None:
    connection = sqlite3.connect(path / "store.sqlite", isolation_level=None)
    for command in commands:
        connection.execute(command)
    connection.close()


def is_one_line(error: BaseException) -> bool:
    message = str(error)
    return bool(message) and "\n" not in message and "Traceback" not in message
