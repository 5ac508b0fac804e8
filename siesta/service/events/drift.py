"""Drift: recent images look less familiar than held-out ones did."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["DriftWatch"]

_RECENT = 100  # predictions
_FEWEST_HELD_OUT = 20
_USUAL_SHARE = 0.05  # of held-out samples that count as unfamiliar
_BEGINS = 0.2  # share of recent images
_ENDS = 0.1


class DriftWatch:
    """Compares the familiarity of the last hundred predictions with that of held-out samples.

    An image is unfamiliar if only one in twenty held-out samples of the active generation is less familiar. There is
    drift from when one in five of the last hundred images is unfamiliar until one in ten is. It may mean new classes,
    another light or a moved camera, and just as well one unknown object before the camera for long: images of a stream
    depend on each other, so this is no test of significance.

    Example:
        >>> watch = DriftWatch()
        >>> watch.use_held_out([0.5] + 39 * [0.9])
        >>> watch.add(100 * [0.9]), watch.add(19 * [0.1]), watch.add([0.1])["drifting"]
        (None, None, True)
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._limit: float | None = None
        self._drifting = False

    def use_held_out(self, familiarity: Sequence[float]) -> None:
        """Use the familiarity of the held-out samples of another generation; predictions are counted anew."""
        enough = len(familiarity) >= _FEWEST_HELD_OUT
        self._limit = float(np.quantile(familiarity, _USUAL_SHARE)) if enough else None
        self._recent.clear()

    def add(self, familiarity: Iterable[float]) -> dict[str, Any] | None:
        """Count predictions; return what to say if drift has begun or ended with them."""
        self._recent.extend(familiarity)
        if self._limit is None or len(self._recent) < _RECENT:
            return None
        share = float(np.mean(np.array(self._recent) < self._limit))
        drifting = share >= _BEGINS or (self._drifting and share > _ENDS)
        if drifting == self._drifting:
            return None
        self._drifting = drifting
        return {"drifting": drifting, "unfamiliar_share": share, "usual_share": _USUAL_SHARE, "predictions": _RECENT}
