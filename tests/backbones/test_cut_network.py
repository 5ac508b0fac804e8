"""Networks as arrays: created with published weights without torch, and with any weights through torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta import BadInput
from siesta.backbones import PUBLISHED, RANDOM, make_backbone, save_checkpoint
from siesta.backbones.arrays import state_arrays
from siesta.backbones.cut_network import CutNetwork, initial_network
from siesta.contracts import Backbone


def is_equal(network: CutNetwork, backbone: Backbone) -> bool:
    pairs = ((network.bottom, backbone.bottom), (network.top, backbone.top))
    return all(
        list(mine) == list(state_arrays(module))
        and all(np.array_equal(mine[name], array) for name, array in state_arrays(module).items())
        for mine, module in pairs
    )


@pytest.mark.parametrize("cut", [0, None, 10])
def test_published_weights_are_those_of_the_torch_network(cut: int | None) -> None:
    network = initial_network("efficientnet_lite0", cut, weights=PUBLISHED, linear=False, input_size=32)
    assert is_equal(network, make_backbone("efficientnet_lite0", cut))
    assert is_equal(network, network.torch_backbone())


def test_random_weights_and_those_of_a_file_come_from_torch(tmp_path: Path) -> None:
    backbone = make_backbone("resnet18", weights=RANDOM)
    save_checkpoint(backbone, tmp_path / "weights")
    for weights in (RANDOM, tmp_path / "weights"):
        network = initial_network("resnet18", None, weights=weights, linear=True, input_size=64)
        assert is_equal(network, backbone) and (network.cut, network.linear) == (6, True)


def test_the_centre_is_named_whatever_the_cut() -> None:
    for cut in (0, 10):
        network = initial_network("efficientnet_lite0", cut, weights=PUBLISHED, linear=False, input_size=32)
        assert network.top[network.centre].shape == (1280,)


def test_without_torch_only_published_weights_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("siesta.extras._is_installed", lambda _module: False)
    network = initial_network("efficientnet_lite0", None, weights=PUBLISHED, linear=False, input_size=32)
    with pytest.raises(BadInput, match="a new learner with random weights needs torch"):
        initial_network("efficientnet_lite0", None, weights=RANDOM, linear=False, input_size=32)
    with pytest.raises(BadInput, match=r"a new learner with the weights '.*file' needs torch"):
        initial_network("efficientnet_lite0", None, weights=tmp_path / "file", linear=False, input_size=32)
    with pytest.raises(BadInput, match="training needs torch"):
        network.torch_backbone()


def test_wrong_cuts_and_missing_weights_are_refused() -> None:
    with pytest.raises(BadInput, match="has no cut after 1 layers"):
        initial_network("efficientnet_lite0", 1, weights=PUBLISHED, linear=False, input_size=32)
    with pytest.raises(BadInput, match="resnet18 has no published weights"):
        initial_network("resnet18", None, weights=PUBLISHED, linear=False, input_size=32)
