"""A convolution that learns faster where each channel has a filter of its own and maps are small.

oneDNN takes very long for the gradient of such filters once a map is smaller than the filter: at 2 x 2 places a filter
of 5 x 5 costs a hundred times its forward pass. As one sum of products for each place in the filter it is cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

__all__ = ["Conv", "conv2d"]

_LARGE_FILTER = 5  # smaller ones are quick as they are

Pair = tuple[int, int]


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, groups: int) -> Tensor:
    """As torch's own, the gradients too, but for their rounding."""
    if torch.compiler.is_compiling() or not _slow(x, weight, stride, padding):
        return F.conv2d(x, weight, bias, stride, padding, 1, groups)
    out: Tensor = _Depthwise.apply(x, weight, bias, stride, padding)  # type: ignore[no-untyped-call]
    return out


class Conv(nn.Conv2d):
    """A convolution that computes so."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        assert isinstance(self.padding, tuple)
        return conv2d(x, weight, bias, self.stride, self.padding, self.groups)  # type: ignore[arg-type]


def _slow(x: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> bool:
    """Whether torch's gradient of the filters would be."""
    channels, inputs, *kernel = weight.shape
    return (
        torch.is_grad_enabled()
        and weight.requires_grad
        and inputs == 1
        and channels == x.shape[1]
        and min(kernel) >= _LARGE_FILTER
        and max(_side(x, weight, stride, padding, dim) for dim in (2, 3)) < min(kernel)
        and x.device.type == "cpu"
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def _side(x: Tensor, weight: Tensor, stride: Pair, padding: Pair, dim: int) -> int:
    """Of the output."""
    return (x.shape[dim] + 2 * padding[dim - 2] - weight.shape[dim]) // stride[dim - 2] + 1


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv2d(x, weight, bias, stride, padding, 1, len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, _, needs_bias, *_ = ctx.needs_input_grad
        below = None
        if needs_x:
            below = torch.ops.aten.convolution_backward(
                gradient,
                x,
                weight,
                None,
                ctx.stride,
                ctx.padding,
                (1, 1),
                False,
                (0, 0),
                len(weight),
                [True, False, False],
            )[0]
        filters = _filter_gradient(x, gradient, weight, ctx.stride, ctx.padding)
        return below, filters, gradient.sum(dim=(0, 2, 3)) if needs_bias else None, None, None


def _filter_gradient(x: Tensor, gradient: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> Tensor:
    """(B, C, H, W) and (B, C, H', W') -> (C, 1, k, k): for each place, the sum over all that met there."""
    seen, wanted = x.permute(0, 2, 3, 1), gradient.permute(0, 2, 3, 1)
    found = torch.zeros_like(weight)
    rows, columns = (list(_met(weight, x, gradient, stride, padding, dim)) for dim in (2, 3))
    for (row, in_rows, out_rows), (column, in_columns, out_columns) in product(rows, columns):
        met = seen[:, in_rows, in_columns] * wanted[:, out_rows, out_columns]
        found[:, 0, row, column] = met.sum(dim=(0, 1, 2))
    return found


def _met(
    weight: Tensor, x: Tensor, gradient: Tensor, stride: Pair, padding: Pair, dim: int
) -> Iterator[tuple[int, slice, slice]]:
    """Places of a filter along one side, with the inputs that each met and the outputs it met them for."""
    step, margin = stride[dim - 2], padding[dim - 2]
    for place in range(weight.shape[dim]):
        first = max(0, -((place - margin) // step))
        last = min(gradient.shape[dim] - 1, (x.shape[dim] - 1 + margin - place) // step)
        if first <= last:
            start = first * step + place - margin
            yield place, slice(start, last * step + place - margin + 1, step), slice(first, last + 1)
