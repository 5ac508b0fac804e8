"""Byte sizes as text: 1 MB is 10^6 bytes, 1 MiB is 2^20 bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from siesta.errors import BadInput

__all__ = ["format_bytes", "parse_bytes"]

_UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def parse_bytes(size: str | int, sample_bytes: int | None = None) -> int:
    """Return the bytes of a size such as 64MB, 1.5 GiB or 64000000, or of "500 samples" if `sample_bytes` is given.

    Example:
        >>> parse_bytes("64MB"), parse_bytes("1.5 KiB"), parse_bytes("500 samples", 1600)
        (64000000, 1536, 800000)
    """
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    units = _UNITS if sample_bytes is None else _UNITS | {"SAMPLES": sample_bytes}
    if match is None or match[2].upper() not in units:
        raise BadInput(f"'{size}' is not a size: write it like 64MB or 2GiB")
    return int(Decimal(match[1]) * units[match[2].upper()])


def format_bytes(count: int) -> str:
    """Return a size as text with a unit, in powers of ten.

    Example:
        >>> format_bytes(64000000), format_bytes(1568)
        ('64.0 MB', '1.6 KB')
    """
    for unit in ("TB", "GB", "MB", "KB"):
        if count >= 0.99995 * _UNITS[unit]:  # smaller values round to less than 1000 of the next smaller unit
            return f"{count / _UNITS[unit]:.1f} {unit}"
    return f"{count} B"
