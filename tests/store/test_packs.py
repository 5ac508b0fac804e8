"""Records of packs among the edits."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.errors import BadInput
from tests.store.stores import make_store, sample, swap, weights


def test_a_record_says_what_was_packed_and_which_edits_followed() -> None:
    store = make_store()
    store.add([sample("ant", 1), sample("bee", 2)])
    with store.sleeping():
        store.edits.rename("ant", "emmet")
        record = store.packs.record()
        store.edits.rename("bee", "wasp")
        found, edits = store.packs.find(record.id)
    assert found == record
    assert (record.generation, record.last, record.newest, len(record.id)) == (0, 0, 2, 32)
    assert [(edit["what"], edit["label"]) for edit in edits] == [("rename", "bee")]


def test_a_pack_is_recorded_only_while_nothing_is_edited() -> None:
    with pytest.raises(BadInput, match="only inside"):
        make_store().packs.record()


def test_unknown_and_outdated_packs_are_refused() -> None:
    store = make_store()
    store.add([sample("ant", 1)])
    with store.sleeping():
        record = store.packs.record()
    with pytest.raises(BadInput, match="it is not a pack of"):
        store.packs.find("another")
    swap(store, weights(1), np.array([1]), {})
    with pytest.raises(BadInput, match="has slept or was rolled back since"):
        store.packs.find(record.id)
