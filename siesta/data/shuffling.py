"""Shuffles that are a seed's for ever."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["shuffled"]


def shuffled(values: npt.NDArray[np.int64], seed: int, *purpose: int) -> npt.NDArray[np.int64]:
    """The values in a random order that hangs on seed and purpose alone.

    NumPy promises the raw bits of a bit generator for all versions and machines, and not what `Generator.shuffle`
    makes of them. So the bits are keys to sort by.
    """
    if seed < 0:
        raise BadInput(f"a seed is 0 or more, not {seed}")
    bits = np.random.PCG64(np.random.SeedSequence((seed, *purpose)))
    keys = np.asarray(bits.random_raw(len(values)), dtype=np.uint64)
    return values[np.argsort(keys, kind="stable")]
