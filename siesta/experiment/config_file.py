"""TOML files of configs: inheritance by `extends`, key names of version 0.1, and `--set key=value`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from siesta.errors import BadInput

__all__ = ["read_values", "set_key"]

_MERGED = ("data", "network", "base")
_NOT_INHERITED = ("shows", "published")
_NEW_NAMES = {"rate": "lr", "final_rate": "final_lr"}
"""Key names of version 0.1, in `base` and in the tables of methods."""


def read_values(path: Path) -> dict[str, Any]:
    """Read a file and the files that it extends.

    `extends` names another file, relative to this one. Keys of `data`, `network` and `base` override those of the other
    file one by one; any other key, such as the table of methods, replaces the other's as a whole. `shows` and
    `published` are not inherited. Files may extend one another in a chain.
    """
    return _read_chain(path, ())


def _read_chain(path: Path, extended_by: tuple[Path, ...]) -> dict[str, Any]:
    if path in extended_by:
        raise BadInput(f"{path} extends itself: name another file")
    values = _read_file(path)
    parent_name = values.pop("extends", None)
    if parent_name is None:
        return values
    if not isinstance(parent_name, str):
        raise BadInput(f"{path}: extends must be the name of a file, not {parent_name!r}")
    parent = _read_chain(path.parent / parent_name, (*extended_by, path))
    for name in _MERGED:
        if isinstance(values.get(name), dict) and isinstance(parent.get(name), dict):
            values[name] = parent[name] | values[name]
    return {name: value for name, value in parent.items() if name not in _NOT_INHERITED} | values


def _read_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"there is no config at {path}: check the path") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): give a readable TOML file") from error
    except (ValueError, RecursionError) as error:  # not TOML, or not UTF-8, or nested too deeply
        raise BadInput(f"{path} is not TOML ({str(error).splitlines()[0]}): correct it") from error
    try:
        _rename_old_keys(values)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return values


def _rename_old_keys(values: dict[str, Any]) -> None:
    """Give keys of version 0.1 their new names, in place; refuse a table that has both."""
    for table in _renamed_tables(values):
        for old, new in _NEW_NAMES.items():
            if old in table and new in table:
                raise BadInput(f"'{old}' is the old name of '{new}': remove one of them")
            if old in table:
                table[new] = table.pop(old)


def _renamed_tables(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tables that may have old keys: `base`, each method and its own `base`."""
    methods = values.get("methods")
    entries = list(methods.values()) if isinstance(methods, dict) else []
    nested = [entry.get("base") for entry in entries if isinstance(entry, dict)]
    for table in (values.get("base"), *entries, *nested):
        if isinstance(table, dict):
            yield table


def set_key(values: dict[str, Any], change: str) -> None:
    """Apply one change `a.b.c=value` in place; the value is parsed as TOML, or taken as text if it is not TOML."""
    key, equals, text = change.partition("=")
    if not (equals and key):
        raise BadInput(f"'{change}' is not a change: write it like data.image_size=128")
    *tables, last = key.split(".")
    table = values
    for name in tables:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise BadInput(f"'{change}' cannot be set: {name} is a value, not a table")
    if tables and tables[0] in ("base", "methods"):
        last = _NEW_NAMES.get(last, last)
    try:
        table[last] = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        table[last] = text
    try:
        _rename_old_keys(values)  # the value itself may be a table with old keys
    except BadInput as error:
        raise BadInput(f"'{change}' cannot be set: {error}") from None
