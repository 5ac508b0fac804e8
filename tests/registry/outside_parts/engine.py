"""An engine: torch with channels-last tensors."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from siesta.contracts import NetworkPart

__all__ = ["ChannelsLast"]


class ChannelsLast:
    """Run a network on channels-last feature maps."""

    needs_graph: ClassVar[bool] = False
    cpu_only: ClassVar[bool] = False

    def __init__(self, network: nn.Module, device: str) -> None:
        self._network = network.to(device).eval()
        self._device = device

    @classmethod
    def load(cls, part: NetworkPart, device: str) -> Self:
        """Run the torch module of the part."""
        return cls(part.module(), device)

    @torch.inference_mode()
    def run(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """A batch of images or latents -> the network's output."""
        maps = torch.from_numpy(np.array(inputs)).to(self._device)
        output = self._network(maps.contiguous(memory_format=torch.channels_last) if maps.ndim == 4 else maps)
        found: npt.NDArray[np.float32] = output.cpu().numpy()
        return found
