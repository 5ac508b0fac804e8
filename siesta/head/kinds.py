"""The heads that a learner may have, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from siesta.errors import BadInput

__all__ = ["COSINE", "DEFAULT_HEAD", "DISCRIMINANT", "HEADS", "check_head", "head_of"]

COSINE = "cosine"
DISCRIMINANT = "discriminant"
DEFAULT_HEAD = DISCRIMINANT

HEADS = {
    COSINE: "the cosine softmax of the paper, over class means that sleep trains",
    DISCRIMINANT: "a linear discriminant over statistics of the stored samples, besides that softmax",
}


def check_head(name: str) -> None:
    """Raise `BadInput` unless there is a head with this name."""
    if name not in HEADS:
        raise BadInput(f"there is no head '{name}': choose one of {', '.join(HEADS)}")


def head_of(settings: Mapping[str, Any]) -> str:
    """Return the head that a sleep or a refit gives a learner with these settings.

    Learners of version 0.1 recorded none; they have the cosine softmax until then.
    """
    return str(settings.get("head", DEFAULT_HEAD))
