"""The encoder normalises pixels and embeds crops of several sizes."""

from __future__ import annotations

import torch
from torch import nn

from siesta.backbones.spec import IMAGENET
from siesta.pretrain.encoder import projection_mlp
from tests.pretrain.toys import FEATURES, tiny_encoder


def test_pixels_are_normalised_before_the_first_layer() -> None:
    encoder = tiny_encoder().eval()
    pixels = 255 * torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (IMAGENET.mean, IMAGENET.std))
    with torch.no_grad():
        torch.testing.assert_close(encoder(pixels), encoder.layers((pixels - mean) / std))


def test_crops_of_several_sizes_are_embedded_crop_after_crop() -> None:
    encoder = tiny_encoder().eval()
    crops = [255 * torch.rand(2, 3, side, side) for side in (32, 32, 16, 24)]
    with torch.no_grad():
        together = encoder.encode_crops(crops)
        one_by_one = torch.cat([encoder(crop) for crop in crops])
    assert together.shape == (8, FEATURES)
    torch.testing.assert_close(together, one_by_one)


def test_neighbouring_crops_of_one_size_share_a_pass() -> None:
    encoder = tiny_encoder()
    batches: list[int] = []
    encoder.layers.register_forward_pre_hook(lambda _module, inputs: batches.append(len(inputs[0])))
    encoder.encode_crops([torch.zeros(2, 3, side, side) for side in (32, 32, 16, 32)])
    assert batches == [4, 2, 2]


def test_a_projection_head_has_norms_and_activations_between_its_layers() -> None:
    head = projection_mlp(8, 16, 24, 4)
    assert [type(layer) for layer in head] == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2 + [nn.Linear]
    assert [layer.bias is None for layer in head if isinstance(layer, nn.Linear)] == [True, True, False]
    assert head(torch.rand(3, 8)).shape == (3, 4)
