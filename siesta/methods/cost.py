"""The cost of a method: floating-point operations, updates, seconds, and bytes in parts.

FLOPs are counted as torch does (`FlopCounterMode`): two for each multiply-add of a convolution or matrix product and
none for element-wise operations. They are measured once for each network, on one sample, and multiplied by the number
of samples.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from siesta.contracts import Backbone, Codec, Resources

__all__ = [
    "PHASES",
    "CostCounter",
    "Flops",
    "code_bytes",
    "codebook_bytes",
    "copy_bytes",
    "count_flops",
    "image_bytes",
    "mean_bytes",
    "network_bytes",
    "parameter_count",
]

PHASES = ("wake", "sleep", "inference")
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Flops:
    """FLOPs of one sample in each part of the pipeline.

    Attributes:
        bottom: Forward through H.
        encode: Latents to codes.
        decode: Codes to latents; lookups and sums count as zero.
        top: Forward through G.
        head: Cosines with the class vectors.
        step: Forward and backward through top and head.
    """

    bottom: float
    encode: float
    decode: float
    top: float
    head: float
    step: float

    @classmethod
    def measure(cls, backbone: Backbone, codec: Codec, image_size: int, classes: int) -> Flops:
        """Measure FLOPs by running one black image through copies of all parts.

        The result is cached for each combination of architecture, codec, image size and number of classes.

        Args:
            backbone: The network; neither its weights nor its statistics change.
            codec: The codec at its cut.
            image_size: Side of the square images.
            classes: Number of classes in the head.
        """
        options = tuple(sorted(codec.options.items()))
        key = (
            backbone.name,
            backbone.cut,
            parameter_count(backbone, classes),
            codec.name,
            options,
            image_size,
            classes,
        )
        if key not in _CACHE:
            _CACHE[key] = _measure(backbone, codec, image_size, classes)
        return _CACHE[key]


_CACHE: dict[tuple[object, ...], Flops] = {}
"""FLOPs by architecture; they do not depend on the weights."""


def _measure(backbone: Backbone, codec: Codec, image_size: int, classes: int) -> Flops:
    bottom, top = (copy.deepcopy(part).cpu().eval() for part in (backbone.bottom, backbone.top))
    vectors = torch.ones(classes, backbone.features, requires_grad=True)
    image = torch.zeros(1, 3, image_size, image_size)
    with torch.no_grad():
        latents = bottom(image)
        features = top(latents)
    shape = tuple(latents.shape[1:])
    decoder = codec.decoder(shape)
    codes = torch.zeros(1, codec.code_bytes(shape), dtype=torch.uint8)

    def train() -> None:
        label = torch.zeros(1, dtype=torch.int64)
        loss = F.cross_entropy(_cosines(top.requires_grad_()(latents), vectors), label)
        loss.backward()  # type: ignore[no-untyped-call]

    return Flops(
        bottom=count_flops(lambda: bottom(image)),
        encode=float(codec.encode_flops(shape)),
        decode=count_flops(lambda: decoder(codes)),
        top=count_flops(lambda: top(latents)),
        head=count_flops(lambda: _cosines(features, vectors)),
        step=count_flops(train, gradients=True),
    )


def _cosines(features: Tensor, vectors: Tensor) -> Tensor:
    """(B, D) and (K, D) -> (B, K)."""
    return F.linear(F.normalize(features), F.normalize(vectors))


def count_flops(run: Callable[[], object], *, gradients: bool = False) -> float:
    """Return the FLOPs of a call, with gradients enabled or not."""
    formulas = {torch.ops.aten.convolution_backward: _convolution_backward}
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter, torch.set_grad_enabled(gradients):
        run()
    return float(counter.get_total_flops())


def _convolution_backward(output: Sequence[int], _inputs: object, weight: Sequence[int], *rest: Any, **_: Any) -> int:
    """Return the FLOPs of a convolution's backward pass: each gradient costs as much as the forward pass.

    torch's own formula ignores the groups of a depthwise convolution and overestimates its cost tenfold
    (pytorch/pytorch#183405).
    """
    gradients: Sequence[bool] = rest[-1]  # whether inputs, weights and bias need one
    forward = 2 * math.prod(weight) * output[0] * math.prod(output[2:])
    return forward * sum(gradients[:2])


class CostCounter:
    """Adds up the FLOPs, updates and seconds of a method by phase.

    Attributes:
        updates: Backward passes of single samples.
        flops: By phase, see `PHASES`.
        seconds: By phase.

    Example:
        >>> flops = Flops(bottom=5.0, encode=1.0, decode=0.0, top=7.0, head=2.0, step=30.0)
        >>> counter = CostCounter(flops)
        >>> counter.add("wake", images=10)
        >>> counter.add("sleep", updates=4)
        >>> counter.updates, counter.flops["wake"], counter.flops["sleep"]
        (4, 130.0, 120.0)
    """

    def __init__(self, flops: Flops) -> None:
        self._flops = flops
        self.updates = 0
        self.flops = dict.fromkeys(PHASES, 0.0)
        self.seconds = dict.fromkeys(PHASES, 0.0)

    def add(self, phase: str, *, images: int = 0, codes: int = 0, updates: int = 0, scores: int = 0) -> None:
        """Add the cost of processed samples.

        Args:
            phase: One of `PHASES`.
            images: Images turned into z: bottom, encode, decode, top.
            codes: Stored codes turned into z: decode, top.
            updates: Stored codes trained on, forward and backward.
            scores: Passes of a z through the head, of as many classes as the FLOPs were measured for.
        """
        cost = self._flops
        embedding = cost.decode + cost.top
        self.flops[phase] += (
            images * (cost.bottom + cost.encode + embedding)
            + codes * embedding
            + updates * (cost.decode + cost.step)
            + scores * cost.head
        )
        self.updates += updates

    def add_flops(self, phase: str, flops: float, updates: int = 0) -> None:
        """Add FLOPs and updates of a network that differs from the one that the counter was measured for."""
        self.flops[phase] += flops
        self.updates += updates

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds spent in the block, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(phase, time.perf_counter() - start)

    def add_seconds(self, phase: str, seconds: float) -> None:
        """Add seconds that were measured elsewhere."""
        self.seconds[phase] += seconds

    def state(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"updates": self.updates, "flops": dict(self.flops), "seconds": dict(self.seconds)}

    @classmethod
    def from_state(cls, flops: Flops, state: Mapping[str, Any]) -> CostCounter:
        """Restore a counter from its `state()`."""
        counter = cls(flops)
        counter.updates = int(state["updates"])
        counter.flops |= state["flops"]
        counter.seconds |= state["seconds"]
        return counter

    def resources(self, *, parameters: int, bytes: Mapping[str, int]) -> Resources:  # noqa: A002
        """Return a snapshot of all costs, with P and the parts of M, which only the method knows."""
        return Resources(self.updates, parameters, dict(bytes), dict(self.flops), dict(self.seconds))


def parameter_count(backbone: Backbone, classes: int) -> int:
    """Return P: all weights of bottom and top and one vector a class; like the paper, without 1 / tau."""
    weights = (parameter.numel() for part in (backbone.bottom, backbone.top) for parameter in part.parameters())
    return sum(weights) + classes * backbone.features


def network_bytes(parameters: int) -> int:
    """Return the bytes of the weights in float32."""
    return _FLOAT_BYTES * parameters


def copy_bytes(copies: int, parameters: int) -> int:
    """Return the bytes of further copies of the weights in float32."""
    return copies * network_bytes(parameters)


def code_bytes(samples: int, bytes_each: int) -> int:
    """Return the bytes of stored codes."""
    return samples * bytes_each


def image_bytes(samples: int, image_size: int) -> int:
    """Return the bytes of stored images, one for each pixel and channel."""
    return samples * 3 * image_size * image_size


def codebook_bytes(codec: Codec) -> int:
    """Return the bytes of everything that a fitted codec needs."""
    return sum(array.nbytes for array in codec.state().values())


def mean_bytes(classes: int, features: int, *, item_bytes: int = 8) -> int:
    """Return the bytes of running sums of z and their counts; the sums are float64 by default."""
    return classes * (features * item_bytes + 8)
