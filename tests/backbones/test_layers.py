"""Building blocks against plain NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from siesta.backbones.layers import (
    Gelu,
    InvertedResidual,
    SqueezeExcite,
    StandardisedConv2d,
    channels_last,
    conv_batch_norm,
    conv_group_norm,
    init_weights,
    standardise,
)

Array = npt.NDArray[np.float64]


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def standardise_with_numpy(weight: Array) -> Array:
    flat = weight.reshape(len(weight), -1)
    centred = flat - flat.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / (flat.shape[1] - 1))
    result: Array = (centred / (spread + 1e-5)).reshape(weight.shape)
    return result


def test_channels_last_changes_the_layout_of_filters_alone() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(4, 2))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    assert channels_last(network) is network
    assert network.state_dict()["0.weight"].is_contiguous(memory_format=torch.channels_last)
    assert not network.state_dict()["0.weight"].is_contiguous()
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(6, 4, 1, 1), (6, 1, 5, 5), (2, 3, 3, 3)])
def test_weight_standardisation(shape: tuple[int, ...]) -> None:
    weight = numbers(*shape) * 3 + 1
    expected = standardise_with_numpy(weight.double().numpy())
    np.testing.assert_allclose(standardise(weight).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_weight_standardisation_is_that_of_the_definition() -> None:
    weight = numbers(6, 4, 3, 3).double().requires_grad_()
    std, mean = torch.std_mean(weight, dim=(1, 2, 3), keepdim=True)
    along = numbers(6, 4, 3, 3, seed=1).double()
    (expected,) = torch.autograd.grad((weight - mean) / (std + 1e-5), weight, along)
    (gradient,) = torch.autograd.grad(standardise(weight), weight, along)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("shape", [(2, 5, 3, 4), (2, 5, 1, 1)])
def test_gelu_equals_torchs_in_both_memory_layouts_and_keeps_them(
    layout: torch.memory_format, shape: tuple[int, ...]
) -> None:
    x = (3 * numbers(*shape)).contiguous(memory_format=layout).requires_grad_()
    along = numbers(*shape, seed=1).contiguous(memory_format=layout)
    out = Gelu()(x)
    assert out.is_contiguous(memory_format=layout)
    torch.testing.assert_close(out, nn.functional.gelu(x))
    (expected,) = torch.autograd.grad(nn.functional.gelu(x), x, along)
    torch.testing.assert_close(torch.autograd.grad(out, x, along)[0], expected)


def test_a_filter_without_spread_gives_zeros_and_no_nan() -> None:
    weight = torch.ones(2, 3, 3, 3, requires_grad=True)
    (standardise(weight) * numbers(2, 3, 3, 3)).sum().backward()  # type: ignore[no-untyped-call]
    assert not standardise(weight).any()
    assert weight.grad is not None and weight.grad.isfinite().all()


def test_group_norm_with_standardised_filters() -> None:
    conv, norm = modules = conv_group_norm(4, 16, norm_groups=8, eps=1e-3)
    assert isinstance(conv, StandardisedConv2d) and isinstance(norm, nn.GroupNorm)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.normal_(norm.bias)
    x = numbers(2, 4, 5, 3)
    weight = standardise_with_numpy(conv.weight.detach().double().numpy())[:, :, 0, 0]
    mixed = np.einsum("oc,bchw->bohw", weight, x.double().numpy())
    grouped = mixed.reshape(2, 8, 2, 5, 3)
    axes = (2, 3, 4)
    normed = (grouped - grouped.mean(axes, keepdims=True)) / np.sqrt(grouped.var(axes, keepdims=True) + 1e-3)
    scale, shift = (tensor.detach().double().numpy()[:, None, None] for tensor in (norm.weight, norm.bias))
    expected = normed.reshape(mixed.shape) * scale + shift
    np.testing.assert_allclose(nn.Sequential(*modules)(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)


def test_squeeze_excitation_gates_by_a_hard_sigmoid() -> None:
    module = SqueezeExcite(8, 2, nn.ReLU)
    x = numbers(3, 8, 4, 4, seed=1)
    means = x.double().numpy().mean(axis=(2, 3))
    reduce, expand = (
        (layer.weight.detach().double().numpy()[:, :, 0, 0], layer.bias.detach().double().numpy())
        for layer in (module.reduce, module.expand)
        if layer.bias is not None
    )
    inner = np.maximum(means @ reduce[0].T + reduce[1], 0)
    gate = np.clip((inner @ expand[0].T + expand[1] + 3) / 6, 0, 1)
    expected = x.double().numpy() * gate[:, :, None, None]
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_an_inverted_residual_adds_its_input_only_where_shapes_allow() -> None:
    for inputs, outputs, stride, residual in ((8, 8, 1, True), (8, 8, 2, False), (8, 16, 1, False)):
        block = InvertedResidual(inputs, 4 * inputs, outputs, 3, stride, conv_batch_norm, nn.ReLU).eval()
        x = numbers(1, inputs, 6, 6)
        torch.testing.assert_close(block(x), block.body(x) + x if residual else block.body(x))


def test_fresh_convolutions_keep_the_variance_of_gradients() -> None:
    network = nn.Sequential(nn.Conv2d(64, 128, 3), nn.Conv2d(256, 256, 3, groups=256), nn.Linear(64, 64))
    init_weights(network)
    for module, expected in zip(network, ((2 / (9 * 128)) ** 0.5, (2 / 9) ** 0.5, 0.01), strict=True):
        assert isinstance(module, (nn.Conv2d, nn.Linear))
        assert module.weight.std().item() == pytest.approx(expected, rel=0.05)
        assert module.bias is not None and not module.bias.any()
