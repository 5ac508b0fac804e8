"""Formats of numbers at their limits."""

from __future__ import annotations

import pytest

from siesta.experiment.metrics import MeanStd
from siesta.experiment.report.formatting import (
    format_amount,
    format_mean_std,
    format_p_value,
    format_percent,
    format_tick,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.126, "0.13"),
        (9.999, "10.0"),
        (999, "999"),
        (999.7, "1.00 k"),
        (38_400, "38.4 k"),
        (5_480_000, "5.48 M"),
        (192.87e9, "193 G"),
        (9.7e15, "9.70 P"),
        (3e21, "3000 E"),
    ],
)
def test_amounts_have_three_digits(value: float, text: str) -> None:
    assert format_amount(value) == text


def test_units_and_deviations() -> None:
    assert format_amount(0, "B") == "0 B"
    assert format_mean_std(MeanStd(2e6, 1e5, 3), "B") == "2.00 MB ± 100 kB"
    assert format_mean_std(MeanStd(2e6, 0.0, 3), "B") == format_mean_std(MeanStd(2e6, None, 1), "B") == "2.00 MB"
    assert format_mean_std(None) == format_percent(None) == "-"
    assert (format_percent(MeanStd(-1.5, None, 1), sign=True), format_percent(MeanStd(0.0, 0.5, 2), sign=True)) == (
        "-1.50",
        "+0.00±0.50",
    )


def test_ticks_and_probabilities() -> None:
    assert [format_tick(value, "s") for value in (0, 10, 2.5, 1e3, 1.25e6)] == [
        "0 s",
        "10 s",
        "2.5 s",
        "1 ks",
        "1.25 Ms",
    ]
    assert [format_p_value(p) for p in (0.0009, 0.001, 0.85, 1.0)] == ["<0.001", "0.001", "0.850", "1.000"]
