"""Herding (Welling 2009), as iCaRL chooses its exemplars (Rebuffi et al. 2017, algorithm 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["herding"]


def herding(
    features: npt.NDArray[np.floating],
    count: int,
    rng: np.random.Generator,  # noqa: ARG001
) -> npt.NDArray[np.int64]:
    """Each sample brings the mean of those chosen so far as close to the class mean as it can.

    With the class mean m and k - 1 samples chosen, the k-th is the x that minimises |m - (x + sum of the chosen) / k|.
    The squared distance times k^2 is |w - x|^2 for w = k m - (sum of the chosen), of which |w|^2 is the same for all x.
    Takes O(count N D) operations.

    Example:
        >>> herding(np.array([[0.0], [10.0], [5.0], [4.0]]), 3, np.random.default_rng(0)).tolist()
        [2, 3, 1]
    """
    samples = np.asarray(features, dtype=np.float64)
    squares = (samples**2).sum(axis=1)
    chosen = np.empty(count, dtype=np.int64)
    if count:
        mean = samples.mean(axis=0)
        wanted = mean.copy()  # w
        for place in range(count):
            chosen[place] = np.argmin(squares - 2 * (samples @ wanted))
            squares[chosen[place]] = np.inf  # chosen once only
            wanted += mean - samples[chosen[place]]
    return chosen
