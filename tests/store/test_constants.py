"""Constant tensors, and the codec that may be replaced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.errors import Damaged
from siesta.store import Store
from tests.store.stores import CODE_BYTES, NoSums, make_store, sample

CODEC = {"codebooks": np.ones(3)}
NEW_CODES = np.full((1, CODE_BYTES), 7, dtype=np.uint8)


class EmptySums(NoSums):
    """Sums that stay empty, whatever is added."""

    def add(self, *_: object) -> None:
        pass


def replace_codec(store: Store) -> None:
    with store.sleeping():
        store.edits.replace_codec(CODEC, 0.25, [(np.array([1]), NEW_CODES)], EmptySums(), {"what": "refit"})


def test_constant_tensors_are_read_as_they_were_given(store: Store) -> None:
    assert np.array_equal(store.constants.read("bottom")["w"], np.arange(4.0))


def test_a_damaged_constant_is_refused(path: Path) -> None:
    (path / "bottom.safetensors").write_bytes(b"")
    with pytest.raises(Damaged, match=r"bottom\.safetensors is damaged"):
        Store.open(path, "read").constants.read("bottom")


def test_another_codec_comes_with_other_codes_and_is_seen_by_readers(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s")
    store.add([sample("ant", 1)], error=0.5)
    replace_codec(store)
    reader = Store.open(tmp_path / "s", "read")
    first_hash = reader.constants.codec_hash()
    for each in (store, reader):
        assert np.array_equal(each.constants.read("codec")["codebooks"], np.ones(3))
        assert each.settings["codec_error"] == 0.25
        assert np.array_equal(each.samples.get(np.array([1]))[1], NEW_CODES)
        assert each.drift.read() == (0, 0.0)
    second = {"codebooks": np.zeros(3)}
    with store.sleeping():
        store.edits.replace_codec(second, 0.1, [], EmptySums(), {"what": "refit"})
    assert reader.constants.codec_hash() != first_hash
    assert np.array_equal(reader.constants.read("codec")["codebooks"], np.zeros(3))
    assert not list((tmp_path / "s").glob(".*.next"))


def test_a_failed_replacement_changes_nothing(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s")
    store.add([sample("ant", 1)])
    replace_codec(store)
    with pytest.raises(ZeroDivisionError), store.sleeping():
        store.edits.replace_codec(
            {}, 0.1, ((np.array([1 // zero]), NEW_CODES) for zero in [0]), EmptySums(), {"what": "refit"}
        )
    assert (tmp_path / "s" / ".codec.next").exists(), "the next version was written"
    store.close()
    store = Store.open(tmp_path / "s")
    assert np.array_equal(store.constants.read("codec")["codebooks"], np.ones(3))
    assert store.settings["codec_error"] == 0.25
    assert not (tmp_path / "s" / ".codec.next").exists()
