"""The picture itself, byte for byte: the paper's veridical variant, with nothing below the cut."""

from __future__ import annotations

import torch
from torch import Tensor

from siesta.contracts import Scaling

__all__ = ["Raw"]


class Raw:
    """Stores pixels (3, S, S) as bytes and scales them again when they are read; loses nothing.

    Example:
        >>> codec = Raw.of(Scaling(mean=(127.0,) * 3, std=(128.0,) * 3))
        >>> pixels = torch.tensor([0.0, 7.0, 255.0]).reshape(1, 3, 1, 1)
        >>> codec.encode((pixels - 127) / 128)
        tensor([[  0,   7, 255]], dtype=torch.uint8)
    """

    name = "raw"

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        """Takes the backbone's scaling, each (3,)."""
        self._mean, self._std = (values.float().reshape(1, 3, 1, 1) for values in (mean, std))

    @classmethod
    def of(cls, scaling: Scaling) -> Raw:
        """The codec for a backbone's pixels."""
        return cls(torch.tensor(scaling.mean), torch.tensor(scaling.std))

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Raw:
        """The codec that `state()` described."""
        return cls(state["mean"], state["std"])

    def state(self) -> dict[str, Tensor]:
        """Mean and spread of each channel, (3,)."""
        return {"mean": self._mean.reshape(3), "std": self._std.reshape(3)}

    def to(self, device: torch.device) -> Raw:
        """The same codec on another device."""
        return Raw(self._mean.to(device), self._std.to(device))

    def code_bytes(self, latent_shape: tuple[int, int, int]) -> int:
        """One byte a pixel and channel."""
        channels, rows, columns = latent_shape
        return channels * rows * columns

    def encode(self, latents: Tensor) -> Tensor:
        """Scaled pixels (B, 3, S, S) -> (B, 3 * S * S) uint8."""
        return (latents * self._std + self._mean).round().clamp(0, 255).to(torch.uint8).flatten(1)

    def decode(self, codes: Tensor, latent_shape: tuple[int, int, int]) -> Tensor:
        """(B, 3 * S * S) uint8 -> scaled pixels (B, 3, S, S), channels-last in memory."""
        pixels = codes.reshape(len(codes), *latent_shape).contiguous(memory_format=torch.channels_last)
        return (pixels.float() - self._mean) / self._std
