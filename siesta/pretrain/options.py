"""Options of pre-training methods, checked before anything is copied or trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from siesta.data.options import check_options
from siesta.errors import BadInput
from siesta.pretrain.contract import Pretrainer

__all__ = ["OPTION_BOUNDS", "check_method_options"]

OPTION_BOUNDS: dict[str, tuple[float, float]] = {
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
"""Smallest and largest value of numeric options by name; a name means the same in every method."""

_CLASS_COUNT = "classes"  # set by `pretrain` to the number of folders, never by the user


def check_method_options(name: str, method: type[Pretrainer], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options converted to the types that a method takes.

    Raises:
        BadInput: The method has no such option, or its value is of the wrong type or out of bounds.
    """
    if _CLASS_COUNT in options:
        raise BadInput(f"the {_CLASS_COUNT} of method {name} are the folders in --data: remove this option")
    required = {_CLASS_COUNT: 2} if method.needs_labels else {}
    checked = check_options(f"method {name}", method, {**options, **required})
    checked.pop(_CLASS_COUNT, None)
    for option, value in checked.items():
        low, high = OPTION_BOUNDS.get(option, (None, None))
        if low is not None and high is not None and not low <= value <= high:
            raise BadInput(f"option '{option}' of method {name} must be in {low:g}..{high:g}, not {value:g}")
    return checked
