"""Inference of a network that is not being trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # inference on a CPU must not load torch
    from torch import nn

__all__ = ["Engine", "NetworkPart"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NetworkPart:
    """A bottom or a top, in each form that an engine may run.

    Attributes:
        model: Creates an ONNX model with its current weights; batch norms may be folded into convolutions.
        module: Creates the torch module with these weights; it loads torch.
    """

    model: Callable[[], bytes]
    module: Callable[[], nn.Module]


@runtime_checkable
class Engine(Protocol):
    """Runs a network that is not being trained.

    Attributes:
        needs_graph: Whether it runs the ONNX model of a network, with threads of its own, and not the torch module.
        cpu_only: Whether it runs on a CPU only.
    """

    needs_graph: ClassVar[bool]
    cpu_only: ClassVar[bool]

    @classmethod
    def load(cls, part: NetworkPart, device: str, /) -> Self:
        """Return an engine for a bottom or a top with its current weights.

        Args:
            part: The bottom or top.
            device: The name of the device to run on, such as "cpu".
        """

    def run(self, inputs: Floats, /) -> Floats:
        """Return the network's output (B, ...) for a batch of images or latents (B, ...)."""
