"""Records and checkpoints of version 0.1 are accepted by this version: a cross-cutting check of file formats."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from siesta.errors import BadInput
from siesta.pretrain.result import PretrainResult
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings
from tests.pretrain.toys import TINY

OPTIONS = {"prototypes": 6, "hidden": 8, "embedding": 4, "queue": 8, "queue_waits": 0, "still": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fixture = Path(__file__).parents[1] / "fixtures" / "pretrain_0_1"
    return Path(shutil.copytree(fixture, tmp_path / "runs"))


def run(folder: Path, name: str, lr: float | None = None) -> PretrainResult:
    settings = PretrainSettings("swav", TINY, image_size=32, epochs=4, batch_size=4, lr=lr, seed=3, options=OPTIONS)
    return pretrain(settings, folder / "pictures", folder / f"{name}.safetensors")


def test_a_finished_run_is_recognised_by_its_record(folder: Path) -> None:
    before = (folder / "finished.safetensors").read_bytes()
    result = run(folder, "finished")
    assert result.status == "known" and result.pictures == 32 and [epoch.epoch for epoch in result.history][-1] == 4
    assert (folder / "finished.safetensors").read_bytes() == before


def test_the_record_of_another_learning_rate_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"was made with .*0\.0375, not 0\.5"):
        run(folder, "finished", lr=0.5)


def test_an_interrupted_run_is_resumed_to_the_weights_of_the_finished_one(folder: Path) -> None:
    result = run(folder, "interrupted")
    assert result.status == "trained" and result.pictures == 32
    expected = load_file(folder / "finished.safetensors")
    resumed = load_file(folder / "interrupted.safetensors")
    assert resumed.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-3, atol=1e-4)  # 0.1 may have run elsewhere
    assert not (folder / "interrupted.safetensors.part").exists()
