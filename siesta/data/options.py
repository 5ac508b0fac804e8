"""Options of readers, orders and pre-training methods: keyword arguments of plain types, checked before the call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from siesta.errors import BadInput

__all__ = ["check_options", "option_names"]

_TYPE_NAMES: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    Path: "the path of a file",
}


def option_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's options: its keyword-only parameters."""
    return tuple(_parameters(function))


def check_options(owner: str, function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options converted to the types that `function` takes.

    Args:
        owner: What the options belong to, for error messages.
        function: Function whose keyword-only parameters are the options.
        options: Values by name.

    Raises:
        BadInput: An option is unknown, missing or of the wrong type.
    """
    parameters = _parameters(function)
    for name in options:
        if name not in parameters:
            raise BadInput(f"{owner} has no option '{name}': it has {', '.join(parameters) or 'none'}")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in options:
            raise BadInput(f"{owner} needs the option '{name}': give it a value")
    return {name: _converted(owner, name, value, parameters[name].annotation) for name, value in options.items()}


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {parameter.name: parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def _converted(owner: str, name: str, value: object, annotation: Any) -> object:
    types = get_args(annotation) or (annotation,)
    if Path in types and isinstance(value, str):
        return Path(value)
    if float in types and type(value) is int:
        return float(value)
    if any(type(value) is expected or (expected is Path and isinstance(value, Path)) for expected in types):
        if isinstance(value, float) and not math.isfinite(value):
            raise BadInput(f"option '{name}' of {owner} must be a finite number, not {value}")
        return value
    # None is accepted from Python, but configs and command lines leave the option out instead
    type_names = " or ".join(_TYPE_NAMES[expected] for expected in types if expected in _TYPE_NAMES)
    raise BadInput(f"option '{name}' of {owner} must be {type_names}, not {value!r}")
