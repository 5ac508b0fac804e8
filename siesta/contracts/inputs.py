"""What a learner is taught: images, or vectors that another network has computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from siesta.contracts.arrays import LatentShape

__all__ = ["Input"]


class Input(Protocol):
    """The kind of input of a learner, and its size.

    Attributes:
        noun: What messages call one: "image" or "vector".
    """

    noun: ClassVar[str]

    @property
    def shape(self) -> LatentShape:
        """The shape of one in a batch: (3, S, S) of an image, (1, d) of a vector."""

    def read(self, given: Any, /) -> npt.NDArray[Any]:
        """Return one as it is kept in memory, for `batch`; such an array is returned unchanged.

        Raises:
            BadInput: It cannot be used.
        """

    def batch(self, inputs: Sequence[npt.NDArray[Any]], /) -> npt.NDArray[np.float32]:
        """Return what the bottom takes, (B, *shape), of one or more that were read."""
