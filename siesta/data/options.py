"""Options of readers and orders: keyword arguments of plain types, checked before the call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from siesta.errors import BadInput

__all__ = ["checked", "option_names"]


def option_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a function's options: its keyword-only arguments."""
    return tuple(_options(function))


def checked(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as `function` takes them; one that is unknown, missing or of the wrong type gets a sentence."""
    known = _options(function)
    for name in options:
        if name not in known:
            raise BadInput(f"{what} has no option '{name}': it has {', '.join(known) or 'none'}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise BadInput(f"{what} needs the option '{name}': give it a value")
    return {name: _fitting(what, name, value, known[name].annotation) for name, value in options.items()}


def _options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {parameter.name: parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def _fitting(what: str, name: str, value: object, annotation: Any) -> object:
    kinds = get_args(annotation) or (annotation,)
    if Path in kinds and isinstance(value, str):
        return Path(value)
    if float in kinds and type(value) is int:
        return float(value)
    if any(type(value) is kind or (kind is Path and isinstance(value, Path)) for kind in kinds):
        if isinstance(value, float) and not math.isfinite(value):
            raise BadInput(f"option '{name}' of {what} is a number, not {value}")
        return value
    wanted = " or ".join(_WORDS[kind] for kind in kinds if kind in _WORDS)  # None is for those who leave it out
    raise BadInput(f"option '{name}' of {what} is {wanted}, not {value!r}")


_WORDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a file's path",
}
