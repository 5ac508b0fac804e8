"""Conformance of every backbone at every cut: shapes, equality with the uncut network, gradients, batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from siesta.backbones import BACKBONES, MIN_IMAGE_SIZE, RANDOM, make_backbone
from siesta.backbones.layers import Gelu
from siesta.contracts import Backbone
from siesta.errors import BadInput

CASES = [(name, cut) for name, spec in BACKBONES.items() for cut in spec.cuts]


@cache
def random_backbone(name: str, cut: int) -> Backbone:
    return make_backbone(name, cut, weights=RANDOM)


@pytest.fixture(autouse=True, scope="module")
def _forget_networks() -> Iterator[None]:
    yield
    random_backbone.cache_clear()  # all of them are more than a gigabyte


def noise(count: int, size: int) -> torch.Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(size)) * 2 - 1


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_shapes_are_as_stated(name: str, cut: int) -> None:
    backbone = random_backbone(name, cut)
    *positions, width = BACKBONES[name].cuts[cut]
    shape = (width, *positions) if len(positions) == 2 else (*positions, width)
    assert backbone.latent_shape(224) == shape
    assert backbone.top(torch.zeros(1, *shape)).shape == (1, backbone.features)
    assert not any(parameter.requires_grad for parameter in backbone.bottom.parameters())
    assert all(parameter.requires_grad for parameter in backbone.top.parameters())
    assert not any(module.training for module in (*backbone.bottom.modules(), *backbone.top.modules()))


@pytest.mark.parametrize(("name", "cut"), CASES)
@pytest.mark.parametrize("size", [MIN_IMAGE_SIZE, 45, 96])
def test_split_equals_whole_at_any_size(name: str, cut: int, size: int) -> None:
    split, whole = (random_backbone(name, number) for number in (cut, 0))
    assert len(whole.bottom) == 0
    images = noise(2, size)
    with torch.no_grad():
        features, expected = split.top(split.bottom(images)), whole.top(images)
    spread = expected.std().item()
    assert spread > 1e-4
    torch.testing.assert_close(features, expected, rtol=1e-5, atol=1e-4 * spread)


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_every_weight_of_the_top_learns_from_a_single_sample(name: str, cut: int) -> None:
    backbone = random_backbone(name, cut)
    features = backbone.top(backbone.bottom(noise(1, 64)))
    weights = torch.linspace(-1, 1, features.shape[1])
    gradients = torch.autograd.grad((features * weights).sum(), list(backbone.top.parameters()))
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_the_output_of_a_sample_does_not_depend_on_its_batch(name: str, cut: int) -> None:
    backbone, images = random_backbone(name, cut), noise(3, 48)
    with torch.no_grad():
        together, alone = backbone.top(backbone.bottom(images))[:1], backbone.top(backbone.bottom(images[:1]))
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


ACTIVATIONS = (Gelu, nn.GELU, nn.Hardswish, nn.ReLU, nn.ReLU6)


@pytest.mark.parametrize("name", [name for name, spec in BACKBONES.items() if spec.last_activation is not None])
def test_the_linear_variant_ends_just_before_the_last_activation(name: str) -> None:
    """Its z is the input of that activation, averaged over positions where there are any; nothing else changes."""
    plain, linear = (make_backbone(name, weights=RANDOM, linear=flag) for flag in (False, True))
    entered: list[torch.Tensor] = []
    for module in plain.top.modules():
        if isinstance(module, ACTIVATIONS):
            module.register_forward_hook(lambda _module, inputs, _output: entered.append(inputs[0]))
    latents = plain.bottom(noise(2, 64))
    with torch.no_grad():
        features, expected = linear.top(latents), plain.top(latents)
    last = entered[-1] if entered[-1].ndim == 2 else entered[-1].mean(dim=(2, 3))
    torch.testing.assert_close(features, last)
    assert not torch.allclose(features, expected)
    assert list(linear.top.state_dict()) == list(plain.top.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(linear.top.parameters(), plain.top.parameters(), strict=True))


def test_the_linear_variant_of_a_network_without_last_activation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKBONES, "linear", replace(BACKBONES["resnet18"], last_activation=None))
    with pytest.raises(BadInput, match="linear has no activation before z to leave out: choose space 'centred' or"):
        make_backbone("linear", weights=RANDOM, linear=True)
    assert make_backbone("linear", weights=RANDOM).features == 512


@pytest.mark.parametrize("name", [name for name, spec in BACKBONES.items() if spec.published is None])
def test_a_network_without_published_weights_says_what_to_do(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} has no published weights: give a file of weights, or 'random'"):
        make_backbone(name)


def test_unknown_names_cuts_and_files_are_refused() -> None:
    with pytest.raises(BadInput, match="there is no backbone 'vgg'"):
        make_backbone("vgg")
    with pytest.raises(BadInput, match="no cut after 4 layers: choose one of 3, 5, 7"):
        make_backbone("efficientnet_lite0", 4)
    with pytest.raises(BadInput, match=r"no file of weights at nowhere\.pth"):
        make_backbone("resnet18", weights=Path("nowhere.pth"))
