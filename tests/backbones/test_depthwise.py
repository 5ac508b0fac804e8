"""The fast filter gradient of depthwise convolutions equals torch's own, and is used where torch is slow."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.backbones import make_backbone
from siesta.backbones.depthwise import Conv2d, conv2d

Pair = tuple[int, int]


def _torchs(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, groups: int) -> Tensor:
    return F.conv2d(x, weight, bias, stride, padding, 1, groups)


FITTING = [
    (kernel, side, padding)
    for kernel in (5, 7)
    for side in (1, 2, 3, 4, 6)
    for padding in (kernel // 2, 0)
    if side + 2 * padding >= kernel
]


@pytest.mark.parametrize(("kernel", "side", "padding"), FITTING)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("biased", [True, False])
def test_gradients_are_torchs(kernel: int, side: int, padding: int, stride: int, biased: bool) -> None:
    found = []
    for function in (conv2d, _torchs):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(3, 8, side, side + (side == 3), generator=generator, dtype=torch.float64)
        x = x.to(memory_format=torch.channels_last).requires_grad_()
        weight = torch.randn(8, 1, kernel, kernel, generator=generator, dtype=torch.float64, requires_grad=True)
        bias = torch.randn(8, generator=generator, dtype=torch.float64, requires_grad=True) if biased else None
        out = function(x, weight, bias, (stride, stride), (padding, padding), 8)
        (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)).sum().backward()  # type: ignore[no-untyped-call]
        found.append([out.detach(), x.grad, weight.grad, None if bias is None else bias.grad])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def uses_fast_gradient(x: Tensor, conv: Conv2d) -> bool:
    """The name of the backward function shows which gradient is computed."""
    out = conv(x)
    return out.grad_fn is not None and "Depthwise" in out.grad_fn.name()


def test_it_is_used_for_large_depthwise_filters_on_small_channels_last_maps() -> None:
    small, large = (torch.rand(2, 8, side, side).to(memory_format=torch.channels_last) for side in (4, 5))
    conv = Conv2d(8, 8, 5, padding=2, groups=8)
    assert uses_fast_gradient(small, conv) and not uses_fast_gradient(large, conv)
    assert not uses_fast_gradient(small.contiguous(), conv)
    assert not uses_fast_gradient(small, Conv2d(8, 8, 3, padding=1, groups=8)) and not uses_fast_gradient(
        small, Conv2d(8, 8, 5, padding=2)
    )
    with torch.no_grad():
        assert not uses_fast_gradient(small, conv)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "mobilenet_v3_large"])
def test_networks_have_the_same_gradients_with_it(name: str) -> None:
    """Only channels-last latents take the fast path."""
    backbone = make_backbone(name, weights="random")
    top = backbone.top.double().eval()
    latents = torch.rand(2, *backbone.latent_shape(64), generator=torch.Generator().manual_seed(0)).double()
    gradients = []
    for memory_format in (torch.channels_last, torch.contiguous_format):
        top.zero_grad()
        top(latents.contiguous(memory_format=memory_format)).square().sum().backward()
        gradients.append([weights.grad.clone() for weights in top.parameters() if weights.grad is not None])
    for fast, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, slow)
