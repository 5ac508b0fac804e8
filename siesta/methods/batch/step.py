"""A step of a stream as a batch learner sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from siesta.contracts import Ids

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """What a step trains on.

    Attributes:
        number: 0 for the first step.
        known: Classes before it; they have the first rows.
        classes: Classes after it.
        new_ids: The step's images.
        exemplar_ids: The exemplars of earlier steps.
    """

    number: int
    known: int
    classes: int
    new_ids: Ids
    exemplar_ids: Ids

    @property
    def new(self) -> int:
        """Number of new classes."""
        return self.classes - self.known

    @property
    def ids(self) -> Ids:
        """All images."""
        return np.concatenate([self.exemplar_ids, self.new_ids])
