"""The read-out learns what a bottom lets it, and norms are the only thing that settling changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scripts.ssl_readout import Readout, readout, seen, settled
from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.data import Dataset, load_dataset
from tests.pretrain.toys import TINY

HOW = Readout(TINY, image_size=32, epochs=8, batch_size=8)


@pytest.fixture
def data(textures: Path) -> Dataset:
    return load_dataset("image_folder", textures)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    save_checkpoint(make_backbone(TINY, 0, weights=RANDOM), tmp_path / "random.safetensors")
    return tmp_path / "random.safetensors"


def test_patterns_are_learned_over_a_bottom_that_stays(data: Dataset, weights: Path, tmp_path: Path) -> None:
    pictures = seen(weights, data.train, data.test, HOW, tmp_path / "copies")
    assert len(pictures.crops) == HOW.epochs
    assert not torch.equal(pictures.crops[0][0], pictures.crops[1][0])  # each epoch has crops of its own
    first, again, other = (readout(weights, pictures, len(data.classes), HOW, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == HOW.epochs and max(first) > 2 * 100 / len(data.classes)


def test_settling_changes_norms_only(data: Dataset, weights: Path, tmp_path: Path) -> None:
    fresh = make_backbone(TINY, 0, weights=weights).top.state_dict()
    network = settled(make_backbone(TINY, 0, weights=weights), data.train, HOW, tmp_path / "copies").top.state_dict()
    changed = {name for name, value in network.items() if not torch.equal(value, fresh[name])}
    assert changed == {
        name for name in fresh if name.endswith((".running_mean", ".running_var", ".num_batches_tracked"))
    }
