"""Channels inside residual blocks: which can be removed, masks that learn which, and their removal.

The last convolution of a block reads channels that nothing outside the block sees. They can be removed from everything
before it in the block, back to the convolution that makes them. Channels between blocks stay, as skip connections need
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from siesta.backbones.layers import SqueezeExcite
from siesta.errors import BadInput

__all__ = ["ChannelMask", "InnerChannels", "fit_shapes", "inner_channels"]


class ChannelMask(nn.Module):
    """Multiplies channels by sigmoid(s e); s rises from 1 / steepest to steepest in each epoch, as in HAT and DER.

    The position in the epoch is a buffer, so that a checkpoint has it. Without gradients, s is at its steepest.
    """

    seen: Tensor

    def __init__(self, channels: int, steps: int, steepest: float) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.ones(channels))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.current = torch.ones(channels)  # as the last forward pass used it, (C,)
        self._steps = steps
        self._steepest = steepest

    def steepness(self) -> float:
        """Return s for the current step of the epoch."""
        if not torch.is_grad_enabled():
            return self._steepest
        position = int(self.seen) % self._steps / max(self._steps - 1, 1)
        return 1 / self._steepest + (self._steepest - 1 / self._steepest) * position

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        self.current = (self.steepness() * self.logits).sigmoid()
        if torch.is_grad_enabled():
            self.seen += 1
        return x * self.current[:, None, None]

    def open_channels(self) -> Tensor:
        """Return the channels that are let through more than half; the most open one if there is none."""
        kept = (self.logits > 0).nonzero()[:, 0]
        return kept if len(kept) else self.logits.argmax()[None]


class InnerChannels:
    """The channels that the last convolution of a block reads.

    Attributes:
        body: The block's layers.
        last: Index of the last convolution.
    """

    def __init__(self, body: nn.Sequential, last: int) -> None:
        self.body = body
        self.last = last

    def __len__(self) -> int:
        return _conv(self.body[self.last]).in_channels

    def mask(self, steps: int, steepest: float) -> ChannelMask:
        """Put a mask before the last convolution and return it."""
        mask = ChannelMask(len(self), steps, steepest)
        self.body[self.last] = nn.Sequential(mask, self.body[self.last])
        return mask

    def unmask(self) -> None:
        """Take the mask away."""
        self.body[self.last] = self.body[self.last][1]  # type: ignore[index]

    def weights_per_channel(self) -> int:
        """Return how many weights of convolutions one channel has."""
        last = _conv(self.body[self.last])
        total = last.weight[:, 0].numel()
        for layer in self._before():
            if isinstance(layer, nn.Conv2d):
                total += layer.weight[0].numel()
                if layer.groups == 1:
                    break
        return total

    def importance(self) -> Tensor:
        """Return the sum of absolute weights with which the last convolution reads each channel, (C,)."""
        return _conv(self.body[self.last]).weight.detach().abs().sum(dim=(0, 2, 3))

    def _before(self) -> list[nn.Module]:
        """Return the layers before the last convolution, from the last one on."""
        return list(self.body)[: self.last][::-1]

    def keep(self, kept: Tensor) -> None:
        """Remove all channels but those with these indices."""
        last = _conv(self.body[self.last])
        last.weight = nn.Parameter(last.weight.detach()[:, kept])
        last.in_channels = len(kept)
        for layer in self._before():
            if _shorten(layer, kept):
                return


def _conv(layer: nn.Module) -> nn.Conv2d:
    assert isinstance(layer, nn.Conv2d)
    return layer


def _shorten(layer: nn.Module, kept: Tensor) -> bool:
    """Remove channels of a layer; return whether it is the convolution that makes them."""
    if isinstance(layer, nn.Conv2d):
        layer.weight = nn.Parameter(layer.weight.detach()[kept])
        layer.out_channels = len(kept)
        if layer.groups == 1:
            return True
        layer.in_channels = layer.groups = len(kept)
    elif isinstance(layer, nn.BatchNorm2d):
        layer.weight, layer.bias = (nn.Parameter(part.detach()[kept]) for part in (layer.weight, layer.bias))
        assert layer.running_mean is not None and layer.running_var is not None
        layer.running_mean, layer.running_var = layer.running_mean[kept], layer.running_var[kept]
        layer.num_features = len(kept)
    elif isinstance(layer, SqueezeExcite):
        layer.reduce.weight = nn.Parameter(layer.reduce.weight.detach()[:, kept])
        layer.expand.weight = nn.Parameter(layer.expand.weight.detach()[kept])
        assert layer.expand.bias is not None
        layer.expand.bias = nn.Parameter(layer.expand.bias.detach()[kept])
        layer.reduce.in_channels = layer.expand.out_channels = len(kept)
    return False


def inner_channels(network: nn.Module) -> Iterator[InnerChannels]:
    """Yield the channels that can be removed; raise `BadInput` if there are none."""
    found = False
    for block in network.modules():
        body = getattr(block, "body", None)
        if not isinstance(body, nn.Sequential) or any(isinstance(layer, nn.GroupNorm) for layer in body):
            continue
        convs = [index for index, layer in enumerate(body) if isinstance(layer, nn.Conv2d)]
        makes = [index for index in convs[:-1] if _conv(body[index]).groups == 1]
        if makes and _conv(body[convs[-1]]).groups == 1:
            found = True
            yield InnerChannels(body, convs[-1])
    if not found:
        raise BadInput("the network has no residual blocks with batch norm to prune: choose another backbone or method")


def fit_shapes(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give convolutions and batch norms the channels that tensors of the same names have, before these are loaded."""
    for name, layer in network.named_modules():
        weight = tensors.get(f"{name}.weight")
        if weight is None:
            continue
        if isinstance(layer, nn.Conv2d):
            depthwise = layer.groups > 1
            layer.out_channels = len(weight)
            layer.groups = len(weight) if depthwise else 1
            layer.in_channels = weight.shape[1] * layer.groups
            layer.weight = nn.Parameter(torch.empty_like(weight))
            if layer.bias is not None:
                layer.bias = nn.Parameter(torch.empty(len(weight)))
        elif isinstance(layer, nn.BatchNorm2d):
            layer.num_features = len(weight)
            layer.weight, layer.bias = (nn.Parameter(torch.empty_like(weight)) for _ in range(2))
            layer.running_mean, layer.running_var = torch.empty_like(weight), torch.empty_like(weight)
