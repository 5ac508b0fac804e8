"""Depthwise convolution with a fast filter gradient on small feature maps.

oneDNN is very slow at the gradient of depthwise filters that are larger than the feature map: at 2 x 2 positions, the
gradient of a 5 x 5 filter takes a hundred times as long as its forward pass. One sum of products for each position in
the filter is cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

__all__ = ["Conv2d", "conv2d"]

_MIN_KERNEL = 5  # torch is fast for smaller kernels

Pair = tuple[int, int]


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, groups: int) -> Tensor:
    """Compute the same as `torch.nn.functional.conv2d`, gradients included, up to rounding."""
    if torch.compiler.is_compiling() or not _is_slow(x, weight, stride, padding):
        return F.conv2d(x, weight, bias, stride, padding, 1, groups)
    out: Tensor = _Depthwise.apply(x, weight, bias, stride, padding)  # type: ignore[no-untyped-call]
    return out


class Conv2d(nn.Conv2d):
    """`nn.Conv2d` with the fast filter gradient."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        assert isinstance(self.padding, tuple)
        return conv2d(x, weight, bias, self.stride, self.padding, self.groups)  # type: ignore[arg-type]


def _is_slow(x: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> bool:
    """Return whether torch's own gradient of the filters would be slow."""
    channels, inputs, *kernel = weight.shape
    return (
        torch.is_grad_enabled()
        and weight.requires_grad
        and inputs == 1
        and channels == x.shape[1]
        and min(kernel) >= _MIN_KERNEL
        and max(_output_size(x, weight, stride, padding, dim) for dim in (2, 3)) < min(kernel)
        and x.device.type == "cpu"
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def _output_size(x: Tensor, weight: Tensor, stride: Pair, padding: Pair, dim: int) -> int:
    """Return the size of the output along one dimension."""
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
        x_gradient = None
        if needs_x:
            x_gradient = torch.ops.aten.convolution_backward(
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
        weight_gradient = _filter_gradient(x, gradient, weight, ctx.stride, ctx.padding)
        bias_gradient = gradient.sum(dim=(0, 2, 3)) if needs_bias else None
        return x_gradient, weight_gradient, bias_gradient, None, None


def _filter_gradient(x: Tensor, gradient: Tensor, weight: Tensor, stride: Pair, padding: Pair) -> Tensor:
    """(B, C, H, W) and (B, C, H', W') -> (C, 1, k, k): for each filter position, a sum over inputs times gradients."""
    inputs, gradients = x.permute(0, 2, 3, 1), gradient.permute(0, 2, 3, 1)
    weight_gradient = torch.zeros_like(weight)
    rows, columns = (list(_overlaps(weight, x, gradient, stride, padding, dim)) for dim in (2, 3))
    for (row, in_rows, out_rows), (column, in_columns, out_columns) in product(rows, columns):
        products = inputs[:, in_rows, in_columns] * gradients[:, out_rows, out_columns]
        weight_gradient[:, 0, row, column] = products.sum(dim=(0, 1, 2))
    return weight_gradient


def _overlaps(
    weight: Tensor, x: Tensor, gradient: Tensor, stride: Pair, padding: Pair, dim: int
) -> Iterator[tuple[int, slice, slice]]:
    """Yield filter positions along `dim`, each with the inputs that it is multiplied with and their outputs."""
    step, margin = stride[dim - 2], padding[dim - 2]
    for position in range(weight.shape[dim]):
        offset = position - margin
        first = max(0, -(offset // step))
        last = min(gradient.shape[dim] - 1, (x.shape[dim] - 1 - offset) // step)
        if first <= last:
            yield position, slice(first * step + offset, last * step + offset + 1, step), slice(first, last + 1)
