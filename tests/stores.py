"""Access to the store behind a learner, for tests of what is stored."""

from __future__ import annotations

from siesta import Siesta
from siesta.store import Store

__all__ = ["store_of"]


def store_of(learner: Siesta) -> Store:
    """Return the learner's own store: the only way to look into one in RAM, or into an open transaction."""
    return learner._store
