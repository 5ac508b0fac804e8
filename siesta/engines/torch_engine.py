"""The torch engine: runs on any device and gives the same numbers as training."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from siesta.contracts import NetworkPart
from siesta.extras import require_torch

if TYPE_CHECKING:  # only this engine needs torch
    from torch import nn

__all__ = ["TorchEngine"]


class TorchEngine:
    """Run a network on one device.

    Example:
        >>> from torch import nn
        >>> engine = TorchEngine(nn.Flatten(), "cpu")
        >>> engine.run(np.zeros((2, 3, 4, 4), np.float32)).shape
        (2, 48)
    """

    needs_graph: ClassVar[bool] = False
    cpu_only: ClassVar[bool] = False

    def __init__(self, network: nn.Module, device: str) -> None:
        self._network, self._device = network.to(device).eval(), device

    @classmethod
    def load(cls, part: NetworkPart, device: str) -> Self:
        """Run the torch module of the part as it is."""
        require_torch("the torch engine")
        return cls(part.module(), device)

    def run(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """A batch of images or latents -> the network's output."""
        import torch

        with torch.inference_mode():
            batch = torch.from_numpy(np.require(inputs, requirements=["W"])).to(self._device)
            output: npt.NDArray[np.float32] = self._network(batch).cpu().numpy()
        return output
