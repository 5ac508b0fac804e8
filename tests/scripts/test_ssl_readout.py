"""The read-out trains top and head over a frozen bottom, and recalibration changes norms only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scripts.ssl_readout import ReadoutSettings, encode_pictures, readout_accuracies, recalibrate_norms
from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.data import Dataset, load_dataset
from tests.pretrain.toys import TINY

SETTINGS = ReadoutSettings(TINY, image_size=32, epochs=8, batch_size=8)


@pytest.fixture
def data(textures: Path) -> Dataset:
    return load_dataset("image_folder", textures)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    save_checkpoint(make_backbone(TINY, 0, weights=RANDOM), tmp_path / "random.safetensors")
    return tmp_path / "random.safetensors"


def test_a_top_learns_textures_over_a_random_bottom(data: Dataset, weights: Path, tmp_path: Path) -> None:
    latents = encode_pictures(weights, data.train, data.test, SETTINGS, tmp_path / "copies")
    assert len(latents.train) == SETTINGS.epochs
    assert not torch.equal(latents.train[0][0], latents.train[1][0])  # each epoch has crops of its own
    first, again, other = (
        readout_accuracies(weights, latents, len(data.classes), SETTINGS, seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert len(first) == SETTINGS.epochs and max(first) > 2 * 100 / len(data.classes)


def test_recalibration_changes_statistics_of_norms_only(data: Dataset, weights: Path, tmp_path: Path) -> None:
    fresh = make_backbone(TINY, 0, weights=weights).top.state_dict()
    network = recalibrate_norms(
        make_backbone(TINY, 0, weights=weights), data.train, SETTINGS, tmp_path / "copies"
    ).top.state_dict()
    changed = {name for name, value in network.items() if not torch.equal(value, fresh[name])}
    assert changed == {
        name for name in fresh if name.endswith((".running_mean", ".running_var", ".num_batches_tracked"))
    }
