"""Number formats shared by tables, figures and texts."""

from __future__ import annotations

import math

from siesta.experiment.metrics import MeanStd

__all__ = [
    "MISSING",
    "format_amount",
    "format_duration",
    "format_mean_std",
    "format_p_value",
    "format_percent",
    "format_tick",
]

MISSING = "-"
_TIME_UNITS = ((1, "s", 60), (60, "min", 60), (3600, "h", math.inf))
"""Seconds per unit, its name, and the number of units from which the next one is used."""

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def format_amount(value: float, unit: str = "") -> str:
    """Format a count or size with three digits and a decimal prefix.

    Example:
        >>> format_amount(31_400_000, "B"), format_amount(9_600), format_amount(7), format_amount(999_600)
        ('31.4 MB', '9.60 k', '7', '1.00 M')
    """
    for size, prefix in _PREFIXES:
        if abs(value) >= 0.9995 * size:
            return f"{_three_digits(value / size)} {prefix}{unit}"
    text = f"{value:.0f}" if float(value).is_integer() else _three_digits(value)
    return f"{text} {unit}".rstrip()


def format_tick(value: float, unit: str = "") -> str:
    """Format a count or size for an axis, without trailing zeros.

    Example:
        >>> format_tick(2_500_000, "B"), format_tick(0.0, "s"), format_tick(30_000)
        ('2.5 MB', '0 s', '30 k')
    """
    number, _, rest = format_amount(value, unit).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {rest}".rstrip()


def _three_digits(value: float) -> str:
    return f"{value:.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}"


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    Example:
        >>> format_duration(12.4), format_duration(90), format_duration(4110), format_duration(10_000)
        ('12 s', '1.5 min', '1.1 h', '2.8 h')
    """
    size, unit = next((size, unit) for size, unit, limit in _TIME_UNITS if abs(seconds) < limit * size)
    return f"{seconds / size:.{0 if abs(seconds) >= 9.95 * size else 1}f}".removesuffix(".0") + f" {unit}"


def format_mean_std(found: MeanStd | None, unit: str = "") -> str:
    """Format mean ± deviation of a count or size; the deviation is omitted if it is zero or undefined."""
    if found is None:
        return MISSING
    return format_amount(found.mean, unit) + (f" ± {format_amount(found.std, unit)}" if found.std else "")


def format_percent(found: MeanStd | None, sign: bool = False) -> str:
    """Format an accuracy, or a difference of two with its sign: two decimals, as in the paper.

    Example:
        >>> format_percent(MeanStd(4.251, 1.378, 9), sign=True)
        '+4.25±1.38'
    """
    if found is None:
        return MISSING
    return ("+" if sign and found.mean >= 0 else "") + str(found)


def format_p_value(p: float) -> str:
    """Format a p-value.

    Example:
        >>> format_p_value(0.0412), format_p_value(1e-9), format_p_value(1.0)
        ('0.041', '<0.001', '1.000')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"
