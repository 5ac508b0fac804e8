"""A method's folder: labels and rows, ranking, and a state that is written whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.errors import BadInput
from siesta.methods.home import Home, chunks
from tests.methods.conftest import Start


def test_rows_follow_the_order_in_which_classes_came(starts: dict[str, Start]) -> None:
    home = Home(starts["opq"].folder(starts["opq"].lesson([4, 2, 4])), "opq")
    assert home.labels == ["class 4", "class 2"]
    assert [home.row_of(label) for label in ("cafe\u0301", "class 2", " caf\u00e9 ", "class 0")] == [2, 1, 2, 3]
    assert home.labels == ["class 4", "class 2", "caf\u00e9", "class 0"]
    assert home.head().class_ids.tolist() == [1, 2]


def test_stored_samples_come_oldest_first_with_their_rows(starts: dict[str, Start]) -> None:
    codes, labels = starts["opq"].lesson([number % 3 for number in range(40)])
    home = Home(starts["opq"].folder((codes, labels)), "opq")
    parts = list(home.stored())
    assert np.array_equal(np.concatenate([some for some, _ in parts]), codes)
    assert np.concatenate([rows for _, rows in parts]).tolist() == [number % 3 for number in range(40)]


def test_of_equal_classes_the_older_one_is_named_first(starts: dict[str, Start]) -> None:
    home = Home(starts["opq"].folder(), "opq")
    for label in "abcd":
        home.row_of(label)
    codes, _ = starts["opq"].lesson([0])
    assert home.answers(codes, 3, lambda z: np.array([[1.0, 2.0, 2.0, 1.0]]).repeat(len(z), axis=0)) == [
        ["b", "c", "a"]
    ]


def test_what_was_saved_is_found_again(starts: dict[str, Start]) -> None:
    folder = starts["opq"].folder()
    home = Home(folder, "opq")
    assert home.own is None
    home.row_of("a")
    home.seen = 7
    home.trained("wake", 5)
    home.save({"x": torch.arange(6.0).reshape(2, 3).T})
    home.row_of("b")  # not saved any more
    (folder / ".method.safetensors.partial").write_bytes(b"what a killed save leaves")
    again = Home(folder, "opq")
    assert again.own is not None and torch.equal(again.own["x"], torch.arange(6.0).reshape(2, 3).T)
    assert (again.labels, again.seen, again.counter.updates) == (["a"], 7, 5)
    again.save({})
    assert not (folder / ".method.safetensors.partial").exists()


def test_a_refused_folder_is_let_go_of(starts: dict[str, Start]) -> None:
    folder = starts["opq"].folder()
    with pytest.raises(BadInput, match="eats codes of 'raw'"):
        Home(folder, "raw")
    Home(folder, "opq").store.close()


def test_chunks_cover_everything_once() -> None:
    for samples in (0, 1, 31, 32, 33, 100):
        assert [number for some in chunks(samples) for number in range(samples)[some]] == list(range(samples))
