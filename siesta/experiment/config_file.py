"""A config as it is written: TOML, over another file where it says so, with keys set besides."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from siesta.errors import BadInput

__all__ = ["read_values", "set_key"]

_MERGED = ("data", "network", "base")
_NOT_INHERITED = ("shows", "published", "later")  # what one file is for


def read_values(path: Path) -> dict[str, Any]:
    """What a file says, over what the file says that it extends.

    `extends` names a file beside it. Of `data`, `network` and `base` single keys take the other's place; anything
    else, such as all of its methods, does so as a whole. What it is compared with (`shows`, `published`, `later`) is
    not taken over. Files may extend one another in a chain.
    """
    return _over(path, ())


def _over(path: Path, later: tuple[Path, ...]) -> dict[str, Any]:
    if path in later:
        raise BadInput(f"{path} extends itself: name another file")
    values = _read(path)
    other = values.pop("extends", None)
    if other is None:
        return values
    if not isinstance(other, str):
        raise BadInput(f"{path}: extends is the name of a file, not {other!r}")
    below = _over(path.parent / other, (*later, path))
    for name in _MERGED:
        if isinstance(values.get(name), dict) and isinstance(below.get(name), dict):
            values[name] = below[name] | values[name]
    return {name: value for name, value in below.items() if name not in _NOT_INHERITED} | values


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"there is no config at {path}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror})") from error
    except ValueError as error:  # not TOML, or not text
        raise BadInput(f"{path} is not TOML: {str(error).splitlines()[0]}") from error


def set_key(values: dict[str, Any], change: str) -> None:
    """Carries out one `a.b.c=value`; the value is TOML, or else taken as text."""
    key, equals, text = change.partition("=")
    if not (equals and key):
        raise BadInput(f"'{change}' sets nothing: write it like data.image_size=128")
    *tables, last = key.split(".")
    for name in tables:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise BadInput(f"'{change}' cannot be set: {name} is a value, not a table")
    try:
        values[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        values[last] = text
