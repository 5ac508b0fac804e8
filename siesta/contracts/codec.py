"""Compression of latents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy.typing as npt

from siesta.contracts.arrays import Codes, Latents, LatentShape
from siesta.contracts.backbone import Normalization

if TYPE_CHECKING:  # the command line's help imports contracts, and must not load torch
    from torch import nn

__all__ = ["Codec"]


@runtime_checkable
class Codec(Protocol):
    """Compresses latents to bytes, in NumPy. A fitted codec has no other state; it accepts any batch size.

    The keyword-only parameters of `fit` are the options of a codec; they have plain types and default values.

    Attributes:
        name: Its key in `CODECS`.
        cut: The only number of layers below the cut that it works with, 0 for a codec of images; any if None.
        needs_fit: Whether it learns from vectors of base images.
    """

    name: ClassVar[str]
    cut: ClassVar[int | None]
    needs_fit: ClassVar[bool]

    @classmethod
    def fit(cls, vectors: Latents, seed: int, normalization: Normalization, /) -> Self:
        """Return a codec for latents that consist of such vectors.

        Args:
            vectors: A uniform sample of the vectors of base images, (N, d); empty, (0, 0), unless it needs a fit.
            seed: The only source of randomness.
            normalization: How the backbone scales its input.
        """

    @classmethod
    def check(cls, latent_shape: LatentShape, /) -> None:
        """Raise `BadInput` if latents of this shape cannot be encoded; it takes the same options as `fit`."""

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]], /) -> Self:
        """Return the codec with this state; further arrays are ignored."""

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays that `from_state` needs."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that it was fitted with, defaults included."""

    def code_bytes(self, latent_shape: LatentShape, /) -> int:
        """Return the number of bytes for one sample of shape (d, r, s) or (N, d)."""

    def encode_flops(self, latent_shape: LatentShape, /) -> int:
        """Return the FLOPs of encoding one sample: two for each multiply-add of a matrix product, none for others."""

    def encode(self, latents: Latents, /) -> Codes:
        """Return the codes (B, code_bytes) uint8 of latents (B, d, r, s) or (B, N, d)."""

    def decode(self, codes: Codes, latent_shape: LatentShape, /) -> Latents:
        """Return the latents (B, *latent_shape) of codes (B, code_bytes) uint8."""

    def decoder(self, latent_shape: LatentShape, /) -> nn.Module:
        """Return a torch module that does the same as `decode` on its device, for training; see `codecs.decoder`."""
