"""A codec that needs no fit: latents in half precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Latents, LatentShape, Normalization

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["HalfPrecision"]


class HalfPrecision:
    """Store every element of Z, times `scale`, as a float of 16 bits."""

    name: ClassVar[str] = "half_precision"
    cut: ClassVar[int | None] = None
    needs_fit: ClassVar[bool] = False

    def __init__(self, scale: float) -> None:
        self._scale = scale

    @classmethod
    def fit(cls, _vectors: Latents, _seed: int, _normalization: Normalization, /, *, scale: float = 1.0) -> Self:
        """Create the codec; it learns nothing."""
        return cls(scale)

    @classmethod
    def check(cls, _latent_shape: LatentShape, /, *, scale: float = 1.0) -> None:
        """Accept any shape."""

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Create a codec from what `state()` returned."""
        return cls(float(state["scale"][0]))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the scale, (1,)."""
        return {"scale": np.array([self._scale])}

    @property
    def options(self) -> dict[str, Any]:
        """The scale."""
        return {"scale": self._scale}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        """Return two bytes for each element."""
        return 2 * math.prod(latent_shape)

    def encode_flops(self, _latent_shape: LatentShape) -> int:
        """Return 0: there are no matrix products."""
        return 0

    def encode(self, latents: Latents) -> Codes:
        """(B, ...) -> (B, code_bytes) uint8."""
        halves = np.ascontiguousarray(latents * self._scale, dtype="<f2")
        return halves.reshape(len(latents), -1).view(np.uint8)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        """(B, code_bytes) uint8 -> (B, ...)."""
        halves = np.ascontiguousarray(codes).view("<f2").reshape(len(codes), *latent_shape)
        return halves.astype(np.float32) / np.float32(self._scale)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        """Return the same decoding in torch."""
        from siesta.codecs.decoder import Decoder

        return Decoder(partial(_decode, latent_shape), scale=np.array([self._scale], np.float32))


def _decode(latent_shape: LatentShape, codes: Tensor, *, scale: Tensor) -> Tensor:
    import torch

    return codes.contiguous().view(torch.float16).reshape(len(codes), *latent_shape).float() / scale
