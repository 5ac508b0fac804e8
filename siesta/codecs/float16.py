"""Numbers in 16 bits each: latents of any kind, nearly as they are, without a fit."""

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

__all__ = ["Float16"]

_SCALE_BYTES = 4
_HALF = np.dtype("<f2")
_SCALE = np.dtype("<f4")


class Float16:
    """Stores each number in two bytes, as a share of the largest in its sample, which takes four.

    Numbers of any magnitude are stored with the precision of 16-bit floats, so that none overflows.

    Example:
        >>> codec = Float16()
        >>> latents = np.array([[[1e6, -2.5e5, 0.0]]], np.float32)
        >>> codes = codec.encode(latents)
        >>> codes.shape, codec.decode(codes, (1, 3)).tolist()
        ((1, 10), [[[1000000.0, -250000.0, 0.0]]])
    """

    name: ClassVar[str] = "float16"
    cut: ClassVar[int | None] = None
    needs_fit: ClassVar[bool] = False

    @classmethod
    def fit(cls, _vectors: Latents, _seed: int, _normalization: Normalization | None = None) -> Self:
        """Create the codec; it learns nothing from vectors."""
        return cls()

    @classmethod
    def check(cls, latent_shape: LatentShape) -> None:
        """Latents of every shape can be stored; there are no options."""

    @classmethod
    def from_state(cls, _state: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Create the codec, which has no state."""
        return cls()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing."""
        return {}

    @property
    def options(self) -> dict[str, Any]:
        """None."""
        return {}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        """Return two bytes for each number and four for the largest."""
        return _SCALE_BYTES + _HALF.itemsize * math.prod(latent_shape)

    def encode_flops(self, _latent_shape: LatentShape) -> int:
        """Return 0: there are no matrix products."""
        return 0

    def encode(self, latents: Latents) -> Codes:
        """(B, ...) -> (B, code_bytes) uint8."""
        rows = np.ascontiguousarray(latents, np.float32).reshape(len(latents), -1)
        scale = np.abs(rows).max(axis=1, keepdims=True)
        scale[scale == 0] = 1
        shares = (rows / scale).astype(_HALF)
        return np.concatenate([scale.astype(_SCALE).view(np.uint8), shares.view(np.uint8)], axis=1)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        """(B, code_bytes) uint8 -> (B, *latent_shape)."""
        scale = np.ascontiguousarray(codes[:, :_SCALE_BYTES]).view(_SCALE)
        shares = np.ascontiguousarray(codes[:, _SCALE_BYTES:]).view(_HALF)
        return (scale * shares.astype(np.float32)).reshape(len(codes), *latent_shape)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        """Return the same decoding in torch."""
        from siesta.codecs.decoder import Decoder

        return Decoder(partial(_decode, latent_shape))


def _decode(latent_shape: LatentShape, codes: Tensor) -> Tensor:
    """(B, code_bytes) uint8 -> (B, *latent_shape) float."""
    import torch

    scale = codes[:, :_SCALE_BYTES].contiguous().view(torch.float32)
    shares = codes[:, _SCALE_BYTES:].contiguous().view(torch.float16)
    return (scale * shares.float()).reshape(len(codes), *latent_shape)
