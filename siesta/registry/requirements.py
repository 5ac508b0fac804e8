"""What the object behind a name must be; a part of another package is checked before it is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable

__all__ = ["Requirement", "class_of", "function_of", "instance_of"]

Requirement = Callable[[object], str | None]
"""Returns what is wrong with an object, as the end of a sentence about it; None for an object that can be used."""


def class_of(protocol: type, arguments: int | None = None) -> Requirement:
    """Require a class that implements a protocol.

    Args:
        protocol: Its methods and class variables are required; what only objects have cannot be seen in a class.
        arguments: With how many positional arguments the class is called; not checked when None.
    """
    members = [name for name, member in vars(protocol).items() if _is_method(name, member)]
    annotations = {name: str(annotation) for name, annotation in inspect.get_annotations(protocol).items()}
    members += [name for name, annotation in annotations.items() if "ClassVar" in annotation]

    def check(part: object) -> str | None:
        if not isinstance(part, type):
            return f"is {_description(part)}, not a class that implements {protocol.__name__}"
        missing = [name for name in members if not hasattr(part, name)]
        if missing:
            return f"does not implement {protocol.__name__}: it has no {', '.join(missing)}"
        return None if arguments is None else _call_problem(part, arguments)

    return check


def function_of(arguments: int) -> Requirement:
    """Require something that is called with this number of positional arguments."""

    def check(part: object) -> str | None:
        return _call_problem(part, arguments) if callable(part) else f"is {_description(part)}, not a function"

    return check


def instance_of(expected: type) -> Requirement:
    """Require an object of a class."""

    def check(part: object) -> str | None:
        return None if isinstance(part, expected) else f"is {_description(part)}, not a {expected.__name__}"

    return check


def _is_method(name: str, member: object) -> bool:
    return not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod | staticmethod))


def _call_problem(part: Callable[..., object], arguments: int) -> str | None:
    try:
        parameters = inspect.signature(part).parameters.values()
    except ValueError:  # some callables of extension modules have no signature
        return None
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = sum(one.default is one.empty for one in positional)
    takes_more = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if required <= arguments and (takes_more or arguments <= len(positional)):
        return None
    return f"cannot be called with {arguments} positional argument{'s' * (arguments != 1)}"


def _description(part: object) -> str:
    """Return a class as "the class X", any other object as "of type X"."""
    return f"the class {part.__name__}" if isinstance(part, type) else f"of type {type(part).__name__}"
