"""The folder of a method: rows of labels, ranking, validation, and a state that is written atomically."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.errors import BadInput
from siesta.methods.cost import parameter_count
from siesta.methods.workspace import Workspace, batches, checkpoint_file
from tests.methods.conftest import Template


def test_rows_follow_the_order_in_which_classes_came(templates: dict[str, Template]) -> None:
    workspace = Workspace(templates["opq"].folder(templates["opq"].samples([4, 2, 4])), "opq")
    assert workspace.labels == ["class 4", "class 2"]
    assert [workspace.row_of(label) for label in ("cafe\u0301", "class 2", " caf\u00e9 ", "class 0")] == [2, 1, 2, 3]
    assert workspace.labels == ["class 4", "class 2", "caf\u00e9", "class 0"]
    assert workspace.head().class_ids.tolist() == [1, 2]


def test_stored_samples_come_oldest_first_with_their_rows(templates: dict[str, Template]) -> None:
    codes, labels = templates["opq"].samples([number % 3 for number in range(40)])
    workspace = Workspace(templates["opq"].folder((codes, labels)), "opq")
    parts = list(workspace.stored_samples())
    assert np.array_equal(np.concatenate([part for part, _ in parts]), codes)
    assert np.concatenate([rows for _, rows in parts]).tolist() == [number % 3 for number in range(40)]


def test_of_equal_scores_the_older_class_ranks_first(templates: dict[str, Template]) -> None:
    workspace = Workspace(templates["opq"].folder(), "opq")
    for label in "abcd":
        workspace.row_of(label)
    codes, _ = templates["opq"].samples([0])
    assert workspace.rank(codes, 3, lambda z: np.array([[1.0, 2.0, 2.0, 1.0]]).repeat(len(z), axis=0)) == [
        ["b", "c", "a"]
    ]


def test_saved_state_is_restored(templates: dict[str, Template]) -> None:
    folder = templates["opq"].folder()
    workspace = Workspace(folder, "opq")
    assert workspace.saved is None
    workspace.row_of("a")
    workspace.seen = 7
    workspace.count_updates("wake", 5)
    workspace.save({"x": torch.arange(6.0).reshape(2, 3).T})
    workspace.row_of("b")  # not saved
    (folder / ".method.safetensors.partial").write_bytes(b"what a killed save leaves")
    restored = Workspace(folder, "opq")
    assert restored.saved is not None and torch.equal(restored.saved["x"], torch.arange(6.0).reshape(2, 3).T)
    assert (restored.labels, restored.seen, restored.counter.updates) == (["a"], 7, 5)
    restored.save({})
    assert not (folder / ".method.safetensors.partial").exists()


def test_a_refused_folder_is_closed(templates: dict[str, Template]) -> None:
    folder = templates["opq"].folder()
    with pytest.raises(BadInput, match="requires codec 'raw', but the learner uses 'opq'"):
        Workspace(folder, "raw")
    Workspace(folder, "opq").close()


def test_batches_cover_every_sample_once() -> None:
    for samples in (0, 1, 31, 32, 33, 100):
        assert [number for batch in batches(samples) for number in range(samples)[batch]] == list(range(samples))


def test_resources_count_stored_samples_only_for_methods_with_a_buffer(templates: dict[str, Template]) -> None:
    workspace = Workspace(templates["opq"].folder(templates["opq"].samples([0, 1, 1])), "opq")
    weights = parameter_count(workspace.pipeline.backbone, 2)
    with_buffer = workspace.resources(buffer=True, copies=2, means=5)
    assert with_buffer.parameters == weights
    assert with_buffer.bytes["codes"] == 3 * workspace.store.code_bytes and with_buffer.bytes["images"] == 0
    assert with_buffer.bytes["copies"] == 2 * 4 * weights and with_buffer.bytes["means"] == 5
    assert workspace.resources(buffer=False).bytes["codes"] == 0


def test_a_checkpoint_lies_beside_the_folder() -> None:
    assert checkpoint_file(Path("a/work")) == Path("a/work.halfway")
