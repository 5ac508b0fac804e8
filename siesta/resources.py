"""What a method costs: floating-point operations, updates, seconds, and bytes in parts.

FLOPs are as torch counts them (`FlopCounterMode`): two for each multiply-add of a convolution or matrix product,
nothing for what is done element by element. They are measured once on the real network, for one sample, and then
multiplied.
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
    "Counter",
    "Flops",
    "codebooks",
    "codes",
    "copies",
    "images",
    "means",
    "network_bytes",
    "parameters",
]

PHASES = ("wake", "sleep", "inference")
_FLOAT = 4  # bytes


@dataclass(frozen=True)
class Flops:
    """FLOPs of one sample in each part of the network.

    Attributes:
        bottom: Forward through H.
        encode: Latents to codes.
        decode: Codes to latents; lookups and sums count as nothing.
        top: Forward through G.
        head: Cosines with all classes.
        step: Forward and backward through top and head.
        whole: Forward and backward through bottom, top and head.
    """

    bottom: float
    encode: float
    decode: float
    top: float
    head: float
    step: float
    whole: float

    @classmethod
    def measure(cls, backbone: Backbone, codec: Codec, image_size: int, classes: int) -> Flops:
        """Runs one black picture through copies of all parts.

        Args:
            backbone: The network; neither its weights nor its statistics change.
            codec: What lies at its cut.
            image_size: Side of the square pictures.
            classes: How many the head tells apart.
        """
        key = (backbone.name, backbone.cut, parameters(backbone, classes), codec.name, image_size, classes)
        if key not in _MEASURED:
            _MEASURED[key] = _measure(backbone, codec, image_size, classes)
        return _MEASURED[key]


_MEASURED: dict[tuple[str, int, int, str, int, int], Flops] = {}
"""Networks that were measured already; weights make no difference."""


def _measure(backbone: Backbone, codec: Codec, image_size: int, classes: int) -> Flops:
    device = next(iter(codec.state().values())).device
    bottom, top = (copy.deepcopy(part).to(device).eval() for part in (backbone.bottom, backbone.top))
    vectors = torch.ones(classes, backbone.features, device=device, requires_grad=True)
    picture = torch.zeros(1, 3, image_size, image_size, device=device)
    with torch.no_grad():
        latents = bottom(picture)
        coded = codec.encode(latents)
        features = top(latents)
    shape = latents.shape[1], latents.shape[2], latents.shape[3]

    def step(inputs: Tensor, *parts: torch.nn.Module) -> None:
        for part in parts:
            inputs = part(inputs)
        F.cross_entropy(_cosines(inputs, vectors), torch.zeros(1, dtype=torch.int64, device=device)).backward()  # type: ignore[no-untyped-call]

    return Flops(
        bottom=_count(lambda: bottom(picture)),
        encode=_count(lambda: codec.encode(latents)),
        decode=_count(lambda: codec.decode(coded, shape)),
        top=_count(lambda: top(latents)),
        head=_count(lambda: _cosines(features, vectors)),
        step=_count(lambda: step(latents, top.requires_grad_()), gradients=True),
        whole=_count(lambda: step(picture, bottom.requires_grad_(), top), gradients=True),
    )


def _cosines(features: Tensor, vectors: Tensor) -> Tensor:
    """(B, D) and (K, D) -> (B, K)."""
    return F.linear(F.normalize(features), F.normalize(vectors))


def _count(run: Callable[[], object], *, gradients: bool = False) -> float:
    right = {torch.ops.aten.convolution_backward: _backward_of_convolution}
    with FlopCounterMode(display=False, custom_mapping=right) as counter, torch.set_grad_enabled(gradients):
        run()
    return float(counter.get_total_flops())


def _backward_of_convolution(
    output: Sequence[int], _inputs: object, weight: Sequence[int], *rest: Any, **_: Any
) -> int:
    """Each wanted gradient costs as much as the forward pass.

    torch's own formula forgets the groups of a depthwise convolution and finds ten times as much
    (pytorch/pytorch#183405).
    """
    gradients: Sequence[bool] = rest[-1]  # of inputs, weights, bias
    forward = 2 * math.prod(weight) * output[0] * math.prod(output[2:])
    return forward * sum(gradients[:2])


class Counter:
    """Adds up what a method spends, by phase.

    Example:
        >>> counter = Counter(Flops(bottom=5.0, encode=1.0, decode=0.0, top=7.0, head=2.0, step=30.0, whole=45.0))
        >>> counter.spend("wake", looked=10)
        >>> counter.spend("sleep", trained=4)
        >>> counter.updates, counter.flops["wake"], counter.flops["sleep"]
        (4, 130.0, 120.0)
    """

    def __init__(self, flops: Flops) -> None:
        self._flops = flops
        self.updates = 0
        self.flops = dict.fromkeys(PHASES, 0.0)
        self.seconds = dict.fromkeys(PHASES, 0.0)

    def spend(self, phase: str, *, looked: int = 0, embedded: int = 0, trained: int = 0, scored: int = 0) -> None:
        """Counts samples.

        Args:
            phase: One of `PHASES`.
            looked: Pictures made into z: bottom, encode, decode, top.
            embedded: Codes made into z: decode, top.
            trained: Codes learned from, forward and backward; each is an update.
            scored: z compared with all classes.
        """
        cost = self._flops
        embedding = cost.decode + cost.top
        self.flops[phase] += (
            looked * (cost.bottom + cost.encode + embedding)
            + embedded * embedding
            + trained * (cost.decode + cost.step)
            + scored * cost.head
        )
        self.updates += trained

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Adds the seconds spent inside, an exception's too."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(phase, time.perf_counter() - start)

    def add_seconds(self, phase: str, seconds: float) -> None:
        """Adds seconds that were measured elsewhere."""
        self.seconds[phase] += seconds

    def state(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"updates": self.updates, "flops": dict(self.flops), "seconds": dict(self.seconds)}

    @classmethod
    def from_state(cls, flops: Flops, state: Mapping[str, Any]) -> Counter:
        """The counter that `state()` described."""
        counter = cls(flops)
        counter.updates = int(state["updates"])
        counter.flops |= state["flops"]
        counter.seconds |= state["seconds"]
        return counter

    def resources(self, *, parameters: int, bytes: Mapping[str, int]) -> Resources:  # noqa: A002
        """All of it, with what only the method knows: P and M in parts."""
        return Resources(self.updates, parameters, dict(bytes), dict(self.flops), dict(self.seconds))


def parameters(backbone: Backbone, classes: int) -> int:
    """P: all weights of bottom and top, and a class vector for each class; the paper's figures leave out 1 / tau."""
    weights = (some.numel() for part in (backbone.bottom, backbone.top) for some in part.parameters())
    return sum(weights) + classes * backbone.features


def network_bytes(parameters: int) -> int:
    """Weights, in float32."""
    return _FLOAT * parameters


def copies(count: int, parameters: int) -> int:
    """Further copies of weights, in float32."""
    return count * network_bytes(parameters)


def codes(samples: int, code_bytes: int) -> int:
    """Stored codes."""
    return samples * code_bytes


def images(samples: int, image_size: int) -> int:
    """Stored pictures: a byte for each pixel and channel."""
    return samples * 3 * image_size * image_size


def codebooks(codec: Codec) -> int:
    """All that a fitted codec needs."""
    return sum(some.numel() * some.element_size() for some in codec.state().values())


def means(classes: int, features: int, *, item_bytes: int = 8) -> int:
    """Running sums of z and their counts; sums are float64 unless `item_bytes` says otherwise."""
    return classes * (features * item_bytes + 8)
