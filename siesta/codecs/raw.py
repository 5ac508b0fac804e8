"""Uncompressed images: the paper's veridical rehearsal, which has no layers below the cut."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from siesta.codecs.latents import is_map
from siesta.contracts import Codes, Latents, LatentShape, Normalization
from siesta.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Raw"]


class Raw:
    """Stores images uncompressed, three bytes a pixel, with the whole network above the cut.

    Pixels (3, S, S) are stored as bytes and scaled again when they are decoded.

    Example:
        >>> codec = Raw.from_normalization(Normalization(mean=(127.0,) * 3, std=(128.0,) * 3))
        >>> pixels = np.array([0, 7, 255], np.float32).reshape(1, 3, 1, 1)
        >>> codec.encode((pixels - 127) / 128)
        array([[  0,   7, 255]], dtype=uint8)
    """

    name: ClassVar[str] = "raw"
    cut: ClassVar[int | None] = 0
    needs_fit: ClassVar[bool] = False

    def __init__(self, mean: npt.ArrayLike, std: npt.ArrayLike) -> None:
        """Takes the mean and standard deviation of the backbone's pixels, each (3,)."""
        self._mean, self._std = (np.asarray(values, np.float32).reshape(1, 3, 1, 1) for values in (mean, std))

    @classmethod
    def fit(cls, _vectors: Latents, _seed: int, normalization: Normalization) -> Self:
        """Create the codec for images scaled like this; it learns nothing from vectors."""
        return cls.from_normalization(normalization)

    @classmethod
    def check(cls, latent_shape: LatentShape) -> None:
        """Raise `BadInput` unless these are images; there are no options."""
        if not is_map(latent_shape):
            raise BadInput("the codec raw stores pixels, and this network takes vectors: choose float16 or opq")

    @classmethod
    def from_normalization(cls, normalization: Normalization) -> Self:
        """Create the codec for images scaled like this."""
        return cls(normalization.mean, normalization.std)

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Create a codec from what `state()` returned."""
        return cls(state["mean"], state["std"])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return mean and standard deviation of each channel, (3,)."""
        return {"mean": self._mean.reshape(3), "std": self._std.reshape(3)}

    @property
    def options(self) -> dict[str, Any]:
        """None."""
        return {}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        """Return one byte for each pixel and channel."""
        return math.prod(latent_shape)

    def encode_flops(self, _latent_shape: LatentShape) -> int:
        """Return 0: there are no matrix products."""
        return 0

    def encode(self, latents: Latents) -> Codes:
        """Scaled pixels (B, 3, S, S) -> (B, 3 * S * S) uint8."""
        pixels = np.rint(latents * self._std + self._mean).clip(0, 255)
        return np.ascontiguousarray(pixels).astype(np.uint8).reshape(len(latents), -1)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        """(B, 3 * S * S) uint8 -> scaled pixels (B, 3, S, S), channels-last in memory."""
        pixels = codes.reshape(len(codes), *latent_shape).transpose(0, 2, 3, 1).astype(np.float32, order="C")
        pixels -= self._mean.reshape(3)
        pixels /= self._std.reshape(3)
        return pixels.transpose(0, 3, 1, 2)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        """Return the same decoding in torch."""
        from siesta.codecs.decoder import Decoder

        return Decoder(partial(_decode, latent_shape), mean=self._mean, std=self._std)


def _decode(latent_shape: LatentShape, codes: Tensor, *, mean: Tensor, std: Tensor) -> Tensor:
    """(B, 3 * S * S) uint8 -> scaled pixels (B, 3, S, S), channels-last in memory."""
    import torch

    pixels = codes.reshape(len(codes), *latent_shape).contiguous(memory_format=torch.channels_last)
    return (pixels.float() - mean) / std
