"""Validation and Unicode normalisation of class labels."""

from __future__ import annotations

import unicodedata

from siesta.errors import BadInput

__all__ = ["clean_label"]

_MAX_LENGTH = 200


def clean_label(label: str) -> str:
    """Return a label in Unicode NFC without surrounding space: 1 to 200 characters, no control characters, case kept.

    Example:
        >>> clean_label("  Cafe\u0301 ")
        'Café'
    """
    if not isinstance(label, str):
        raise BadInput(f"a label is text, not {type(label).__name__}: {label!r}")
    text = unicodedata.normalize("NFC", label).strip()
    if not 1 <= len(text) <= _MAX_LENGTH:
        raise BadInput(f"a label has 1 to {_MAX_LENGTH} characters, not {len(text)}: {text[:40]!r}")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise BadInput(f"a label has no control characters: remove them from {text!r}")
    return text
