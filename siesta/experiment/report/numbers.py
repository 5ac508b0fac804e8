"""How numbers are written: the same in tables, figures and texts."""

from __future__ import annotations

import math

from siesta.experiment.metrics import Spread

__all__ = ["MISSING", "amount", "percent", "probability", "span", "tick", "with_deviation"]

MISSING = "-"
_SPANS = ((1, "s", 60), (60, "min", 60), (3600, "h", math.inf))
_STEPS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float, unit: str = "") -> str:
    """A count or size with three digits and a decimal prefix.

    Example:
        >>> amount(31_400_000, "B"), amount(9_600), amount(7), amount(999_600)
        ('31.4 MB', '9.60 k', '7', '1.00 M')
    """
    for size, prefix in _STEPS:
        if abs(value) >= 0.9995 * size:
            return f"{_three_digits(value / size)} {prefix}{unit}"
    text = f"{value:.0f}" if float(value).is_integer() else _three_digits(value)
    return f"{text} {unit}".rstrip()


def tick(value: float, unit: str = "") -> str:
    """The same on an axis: no zeros behind the point.

    Example:
        >>> tick(2_500_000, "B"), tick(0.0, "s"), tick(30_000)
        ('2.5 MB', '0 s', '30 k')
    """
    number, _, rest = amount(value, unit).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {rest}".rstrip()


def _three_digits(value: float) -> str:
    return f"{value:.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}"


def span(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> span(12.4), span(90), span(4110), span(10_000), span(0)
        ('12 s', '1.5 min', '1.1 h', '2.8 h', '0 s')
    """
    size, unit = next((size, unit) for size, unit, most in _SPANS if abs(seconds) < most * size)
    return f"{seconds / size:.{0 if abs(seconds) >= 9.95 * size else 1}f}".removesuffix(".0") + f" {unit}"


def with_deviation(found: Spread | None, unit: str = "") -> str:
    """Mean ± deviation of a count or size; the deviation is left out where there is none."""
    if found is None:
        return MISSING
    return amount(found.mean, unit) + (f" ± {amount(found.std, unit)}" if found.std else "")


def percent(found: Spread | None, sign: bool = False) -> str:
    """An accuracy, or with its sign a difference of two: two decimals, as the paper prints them.

    Example:
        >>> percent(Spread(4.251, 1.378, 9), sign=True)
        '+4.25±1.38'
    """
    if found is None:
        return MISSING
    return ("+" if sign and found.mean >= 0 else "") + str(found)


def probability(p: float) -> str:
    """A p-value.

    Example:
        >>> probability(0.0412), probability(1e-9), probability(1.0)
        ('0.041', '<0.001', '1.000')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"
