"""Images as the input of a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from siesta.contracts import Normalization
from siesta.images.read import ImageLike, Pixels, normalize, read_image

__all__ = ["ImageInput"]


@dataclass(frozen=True)
class ImageInput:
    """Square images; see `contracts.Input`.

    Attributes:
        size: Side in pixels.
        normalization: The scaling of pixels that the network expects.
    """

    noun: ClassVar[str] = "image"

    size: int
    normalization: Normalization

    @property
    def shape(self) -> tuple[int, int, int]:
        """(3, S, S)."""
        return 3, self.size, self.size

    def read(self, given: ImageLike) -> Pixels:
        """Return the pixels (S, S, 3) of an image, see `read_image`."""
        return read_image(given, self.size)

    def batch(self, inputs: Sequence[Pixels]) -> npt.NDArray[np.float32]:
        """Return scaled pixels, (B, 3, S, S)."""
        return normalize(inputs, self.normalization)
