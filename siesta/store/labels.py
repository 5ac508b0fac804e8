"""What a label may be: any text a person would write, in one spelling."""

from __future__ import annotations

import unicodedata

from siesta.errors import BadInput

__all__ = ["clean_label"]

_LONGEST = 200


def clean_label(label: str) -> str:
    """The label in Unicode NFC, trimmed: 1 to 200 characters, none of them a control character, case kept.

    Example:
        >>> clean_label("  Cafe\u0301 ")
        'Café'
    """
    if not isinstance(label, str):
        raise BadInput(f"a label is text, not {type(label).__name__}: {label!r}")
    text = unicodedata.normalize("NFC", label).strip()
    if not 1 <= len(text) <= _LONGEST:
        raise BadInput(f"a label has 1 to {_LONGEST} characters, this one has {len(text)}: {text[:40]!r}")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise BadInput(f"a label has no control characters, this one does: {text!r}")
    return text
