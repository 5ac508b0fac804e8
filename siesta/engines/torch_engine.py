"""torch itself: any device, and the same numbers as training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["TorchEngine"]


class TorchEngine:
    """Runs a network on one device.

    Example:
        >>> engine = TorchEngine(nn.Flatten(), torch.device("cpu"))
        >>> engine.run(torch.zeros(2, 3, 4, 4)).shape
        torch.Size([2, 48])
    """

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self._network, self._device = network.to(device).eval(), device

    @torch.inference_mode()
    def run(self, inputs: Tensor) -> Tensor:
        """(B, C, H, W) on any device -> the network's output on the engine's."""
        output: Tensor = self._network(inputs.to(self._device))
        return output
