"""Every backbone at every cut: split equals whole, shapes as stated, any size from 32 px up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from siesta.backbones import BACKBONES, MIN_IMAGE_SIZE, efficientnet_lite, make_backbone
from siesta.errors import BadInput
from siesta.images import read_image, scaled

CASES = [(name, cut) for name, recipe in BACKBONES.items() for cut in recipe.cuts]


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_shapes_are_as_stated(name: str, cut: int) -> None:
    backbone = make_backbone(name, cut, pretrained=False)
    rows, columns, channels = BACKBONES[name].cuts[cut]
    assert backbone.latent_shape(224) == (channels, rows, columns)
    assert backbone.top(torch.zeros(1, channels, rows, columns)).shape == (1, backbone.features)
    assert not any(parameter.requires_grad for parameter in backbone.bottom.parameters())
    assert all(parameter.requires_grad for parameter in backbone.top.parameters())


@pytest.mark.parametrize(("name", "cut"), CASES)
@pytest.mark.parametrize("size", [MIN_IMAGE_SIZE, 45, 96])
def test_split_equals_whole_at_any_size(name: str, cut: int, size: int) -> None:
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(size)) * 2 - 1
    first, last = (make_backbone(name, some) for some in (cut, max(BACKBONES[name].cuts)))
    with torch.no_grad():
        assert torch.allclose(first.top(first.bottom(images)), last.top(last.bottom(images)), atol=1e-5)


def test_pretrained_weights_differ_from_fresh_ones_and_are_the_same_each_time() -> None:
    states = [make_backbone(pretrained=flag).top.state_dict() for flag in (True, True, False)]
    name = next(name for name in states[0] if name.endswith("weight"))
    assert torch.equal(states[0][name], states[1][name]) and not torch.equal(states[0][name], states[2][name])


def test_strided_convolutions_pad_as_tensorflow_does() -> None:
    """SAME: output ceil(n / 2); for even inputs the odd pixel of padding is at the far edge."""
    conv = efficientnet_lite.SameConv(1, 1, 3, 2, bias=False)
    nn.init.ones_(conv.weight)
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    padded = np.pad(image[0, 0].numpy(), ((0, 1), (0, 1)))
    expected = [[padded[r : r + 3, c : c + 3].sum() for c in (0, 2)] for r in (0, 2)]
    assert conv(image)[0, 0].tolist() == expected
    assert conv(torch.zeros(1, 1, 5, 7)).shape == (1, 1, 3, 4)


def test_unknown_names_are_refused_in_words() -> None:
    with pytest.raises(BadInput, match="there is no backbone 'vgg'"):
        make_backbone("vgg")
    with pytest.raises(BadInput, match="no cut after 4 layers: choose one of 3, 5, 7"):
        make_backbone("efficientnet_lite0", 4)


@pytest.mark.slow
def test_imagenet_accuracy_with_the_original_output(shared_data: Path) -> None:
    """Padding, scale and weights are right: 72.9 % is what these files give."""
    network, scaling = efficientnet_lite.imagenet_classifier(), make_backbone(pretrained=False).scaling
    files = sorted((shared_data / "imagenet_val_1000").glob("*.jpg"))
    right = 0
    for start in range(0, len(files), 50):
        some = files[start : start + 50]
        with torch.no_grad():
            best = network(scaled([read_image(file, 224) for file in some], scaling)).argmax(dim=1)
        right += sum(int(file.stem) == answer for file, answer in zip(some, best.tolist(), strict=True))
    assert len(files) == 1000 and right / len(files) >= 0.72
