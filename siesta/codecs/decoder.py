"""Decoding in torch, for training: a function of codes and of tensors that follow the device of their module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

__all__ = ["Decoder"]


class Decoder(nn.Module):
    """A module without parameters that decodes codes with a function; what the function needs are its buffers.

    Example:
        >>> decoder = Decoder(lambda codes, scale: codes.float() * scale, scale=np.array([0.5], np.float32))
        >>> decoder(torch.tensor([[2, 3]], dtype=torch.uint8))
        tensor([[1.0000, 1.5000]])
    """

    def __init__(self, function: Callable[..., Tensor], **arrays: npt.NDArray[Any]) -> None:
        """Take a function and what it needs.

        Args:
            function: Called with codes (B, code_bytes) uint8 and the tensors by name; it returns latents.
            **arrays: Become buffers, so that `to` moves them.
        """
        super().__init__()
        self._function = function
        self._names = tuple(arrays)
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(np.require(array, requirements=["C", "W"])), persistent=False)

    def forward(self, codes: Tensor) -> Tensor:
        """Return the latents of codes (B, code_bytes) uint8, both on the device of the buffers."""
        return self._function(codes, **{name: getattr(self, name) for name in self._names})
