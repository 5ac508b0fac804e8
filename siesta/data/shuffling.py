"""Shuffles that are the same for a seed on all machines and versions of NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.rng import Purpose, seed_sequence

__all__ = ["shuffled"]


def shuffled(values: npt.NDArray[np.int64], seed: int, purpose: Purpose, *indices: int) -> npt.NDArray[np.int64]:
    """Return the values in a random order that is determined by seed, purpose and indices.

    NumPy guarantees the raw output of a bit generator across versions and machines, but not that of
    `Generator.shuffle`. So the raw output serves as sort keys.
    """
    if seed < 0:
        raise BadInput(f"a seed must be 0 or more, not {seed}")
    bits = np.random.PCG64(seed_sequence(seed, purpose, *indices))
    keys = np.asarray(bits.random_raw(len(values)), dtype=np.uint64)
    return values[np.argsort(keys, kind="stable")]
