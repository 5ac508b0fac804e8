"""Options of methods, checked before anything is copied or trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from siesta.data.options import checked
from siesta.errors import BadInput
from siesta.pretrain.contract import Pretrainer

__all__ = ["BOUNDS", "checked_options"]

BOUNDS: dict[str, tuple[float, float]] = {
    "beta": (0.0, 0.99),
    "embedding": (1, 65_536),
    "epsilon": (0.001, 100.0),
    "first_beta": (0.0, 0.99),
    "generations": (1, 1_000_000),
    "hidden": (1, 65_536),
    "prototypes": (2, 1_000_000),
    "queue": (0, 10_000_000),
    "queue_starts": (0.0, 1.0),
    "queue_waits": (0, 1_000_000_000),
    "redundancy": (0.0, 1000.0),
    "rounds": (1, 1000),
    "slowness": (0.0, 1.0),
    "speed": (0.0, 1.0),
    "still": (0, 1_000_000_000),
    "target_temperature": (0.001, 100.0),
    "teacher_temperature": (0.001, 100.0),
    "temperature": (0.001, 100.0),
    "thaw": (0.0, 1.0),
    "uphill": (0.0, 1.0),
    "weight": (0.0, 1000.0),
    "width": (2, 65_536),
}
"""What numbers may be, by name of the option; the same name means the same in every method."""

_COUNTED = "classes"  # of `supervised`; the folders say how many


def checked_options(name: str, kind: type[Pretrainer], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the method takes them; one that it has not, or that makes no sense, gets a sentence."""
    if _COUNTED in options:
        raise BadInput(f"the {_COUNTED} of method {name} are the folders in --data: leave the option out")
    ready = checked(f"method {name}", kind, {**options, _COUNTED: 2} if kind.labelled else options)
    ready.pop(_COUNTED, None)
    for option, value in ready.items():
        low, high = BOUNDS.get(option, (None, None))
        if low is not None and high is not None and not low <= value <= high:
            raise BadInput(f"option '{option}' of method {name} lies in {low:g}..{high:g}, not {value:g}")
    return ready
