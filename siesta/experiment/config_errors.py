"""Validation errors of a config as one sentence each."""

from __future__ import annotations

import difflib

from pydantic import ValidationError

from siesta.experiment.config_schema import BaseConfig, ConfigFile, DataConfig, NetworkConfig
from siesta.methods import METHODS

__all__ = ["describe_error"]

_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "dict_type": "a table of keys",
    "model_type": "a table of keys",
    "tuple_type": "a list",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
    "literal_error": "{expected}",
}
"""What a value must be, by the type of pydantic's error."""

_KEYS = {name for section in (ConfigFile, DataConfig, NetworkConfig, BaseConfig) for name in section.model_fields}


def describe_error(error: ValidationError, prefix: str = "") -> str:
    """Return a sentence on the first thing that is wrong; `prefix` is put before the key."""
    first = error.errors()[0]
    key = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"there is no key '{key}'{_suggestion(str(first['loc'][-1]))}"
    if first["type"] == "value_error":
        return f"{key}: {first['ctx']['error']}"
    if first["type"] == "missing":
        return f"the key '{key}' is missing"
    expected = _EXPECTED.get(first["type"])
    if expected is None:
        return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"
    return f"{key} must be {expected.format_map(first.get('ctx', {}))}, not {first['input']!r}"


def _suggestion(key: str) -> str:
    """Return what to do about an unknown key: use the most similar one, or remove it."""
    known = _KEYS | {name for method in METHODS.own.values() for name in method.settings_class.model_fields}
    close = difflib.get_close_matches(key, known, n=1)
    return f": did you mean '{close[0]}'?" if close else ": remove it"
