"""Arrays that the parts exchange."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Codes", "Ids", "LatentShape", "Latents"]


Ids = npt.NDArray[np.int64]
"""Sample ids, (N,). Ids are assigned in order and never reused."""

Codes = npt.NDArray[np.uint8]
"""Encoded samples, (B, code_bytes); with the raw codec these are pixels."""

Latents = npt.NDArray[np.float32]
"""Latents Z of a batch, (B, d, r, s) or (B, N, d), or the vectors of which they consist, (N, d)."""

LatentShape = tuple[int, ...]
"""Shape of the latents Z of one sample: (d, r, s) of a feature map, or (N, d) of N tokens."""
