"""Pickling of estimators: a learner in memory goes along, of one in a folder the path does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from siesta.learner import Siesta
from siesta.store import Store

__all__ = ["restored", "saved"]


def saved(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the state of an estimator with plain values in place of its learner."""
    learner = state.get(name)
    return {**state, name: learner.dump()} if isinstance(learner, Siesta) else dict(state)


def restored(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the state with the learner that `saved` was given."""
    dumped = state.get(name)
    if dumped is None:
        return dict(state)
    learner = Siesta.open(dumped) if isinstance(dumped, Path) else Siesta(Store.restore(dumped))
    return {**state, name: learner}
