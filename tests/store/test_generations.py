"""Which generations are kept, and damage to their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged
from siesta.store import Store
from tests.store.stores import (
    is_one_line,
    make_store,
    swap,
    weights,
)


def test_the_last_five_generations_stay_on_disk(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s")
    for number in range(1, 9):
        swap(store, weights(number), np.zeros(0, dtype=np.int64), {})
    names = sorted(folder.name for folder in (tmp_path / "s" / "generations").iterdir())
    assert names == [f"{number:06d}" for number in range(4, 9)]
    assert [generation.number for generation in store.generations.all()] == list(range(4, 9))
    assert [generation.in_use for generation in store.generations.all()] == [False] * 4 + [True]
    with pytest.raises(BadInput, match="no generation 3: choose from 4, 5, 6, 7, 8"):
        store.generations.get(3)
    store.close()


@pytest.mark.parametrize("name", ["bottom.safetensors", "generations/000001/top.safetensors"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "missing"])
def test_a_damaged_tensor_file_is_named(path: Path, name: str, damage: str) -> None:
    file = path / name
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "truncated" else bytes(len(data)))
    store = Store.open(path, "read")
    with pytest.raises(Damaged, match=name) as caught:
        store.constants.read("bottom")
        store.snapshot().weights["top"]
    assert is_one_line(caught.value)
    store.close()


def test_missing_generations_are_damage(path: Path) -> None:
    shutil.rmtree(path / "generations")
    with pytest.raises(Damaged, match="generations"):
        Store.open(path).snapshot().weights["top"]
