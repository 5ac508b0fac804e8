"""Every backbone at every cut: split equals whole, shapes as stated, any size from 32 px up, the top can learn."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from siesta.backbones import BACKBONES, MIN_IMAGE_SIZE, RANDOM, make_backbone
from siesta.backbones.layers import Gelu
from siesta.contracts import Backbone
from siesta.errors import BadInput

CASES = [(name, cut) for name, recipe in BACKBONES.items() for cut in recipe.cuts]


@cache
def fresh(name: str, cut: int) -> Backbone:
    return make_backbone(name, cut, weights=RANDOM)


def noise(count: int, size: int) -> torch.Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(size)) * 2 - 1


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_shapes_are_as_stated(name: str, cut: int) -> None:
    backbone = fresh(name, cut)
    rows, columns, channels = BACKBONES[name].cuts[cut]
    assert backbone.latent_shape(224) == (channels, rows, columns)
    assert backbone.top(torch.zeros(1, channels, rows, columns)).shape == (1, backbone.features)
    assert not any(parameter.requires_grad for parameter in backbone.bottom.parameters())
    assert all(parameter.requires_grad for parameter in backbone.top.parameters())
    assert not any(module.training for module in (*backbone.bottom.modules(), *backbone.top.modules()))


@pytest.mark.parametrize(("name", "cut"), CASES)
@pytest.mark.parametrize("size", [MIN_IMAGE_SIZE, 45, 96])
def test_split_equals_whole_at_any_size(name: str, cut: int, size: int) -> None:
    split, whole = (fresh(name, some) for some in (cut, 0))
    assert len(whole.bottom) == 0
    images = noise(2, size)
    with torch.no_grad():
        features, expected = split.top(split.bottom(images)), whole.top(images)
    spread = expected.std().item()
    assert spread > 1e-4
    torch.testing.assert_close(features, expected, rtol=1e-5, atol=1e-4 * spread)


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_every_weight_of_the_top_learns_from_a_single_sample(name: str, cut: int) -> None:
    backbone = fresh(name, cut)
    features = backbone.top(backbone.bottom(noise(1, 64)))
    weights = torch.linspace(-1, 1, features.shape[1])
    gradients = torch.autograd.grad((features * weights).sum(), list(backbone.top.parameters()))
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_a_sample_does_not_see_its_batch(name: str, cut: int) -> None:
    backbone, images = fresh(name, cut), noise(3, 48)
    with torch.no_grad():
        together, alone = backbone.top(backbone.bottom(images))[:1], backbone.top(backbone.bottom(images[:1]))
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BACKBONES)
def test_fresh_weights_are_the_same_each_time_and_leave_torch_as_it_was(name: str) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = make_backbone(name, weights=RANDOM).top.state_dict()
    torch.manual_seed(6)
    second = make_backbone(name, weights=RANDOM).top.state_dict()
    assert all(torch.equal(first[tensor], second[tensor]) for tensor in first)
    torch.manual_seed(5)
    assert torch.equal(torch.random.get_rng_state(), before)


ACTIVATIONS = (Gelu, nn.GELU, nn.Hardswish, nn.ReLU, nn.ReLU6)


@pytest.mark.parametrize("name", BACKBONES)
def test_the_linear_variant_ends_just_before_the_last_activation(name: str) -> None:
    """Nothing else changes: what enters that activation, averaged over places where there are any, is z."""
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


def test_published_weights_differ_from_fresh_ones_and_are_the_same_each_time() -> None:
    states = [make_backbone(weights=weights).top.state_dict() for weights in ("published", "published", RANDOM)]
    name = next(name for name in states[0] if name.endswith("weight"))
    assert torch.equal(states[0][name], states[1][name]) and not torch.equal(states[0][name], states[2][name])


@pytest.mark.parametrize("name", [name for name, recipe in BACKBONES.items() if recipe.published is None])
def test_a_network_without_published_weights_says_what_to_do(name: str) -> None:
    with pytest.raises(BadInput, match=f"no weights come with {name}: give a file of them, or 'random'"):
        make_backbone(name)


def test_unknown_names_are_refused_in_words() -> None:
    with pytest.raises(BadInput, match="there is no backbone 'vgg'"):
        make_backbone("vgg")
    with pytest.raises(BadInput, match="no cut after 4 layers: choose one of 3, 5, 7"):
        make_backbone("efficientnet_lite0", 4)
    with pytest.raises(BadInput, match=r"no file of weights at nowhere\.pth"):
        make_backbone("resnet18", weights=Path("nowhere.pth"))
