from __future__ import annotations

import pytest

from siesta.experiment.metrics import Spread
from siesta.experiment.report.numbers import amount, percent, probability, tick, with_deviation


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
    assert amount(value) == text


def test_units_and_deviations() -> None:
    assert amount(0, "B") == "0 B"
    assert with_deviation(Spread(2e6, 1e5, 3), "B") == "2.00 MB ± 100 kB"
    assert with_deviation(Spread(2e6, 0.0, 3), "B") == with_deviation(Spread(2e6, None, 1), "B") == "2.00 MB"
    assert with_deviation(None) == percent(None) == "-"
    assert (percent(Spread(-1.5, None, 1), sign=True), percent(Spread(0.0, 0.5, 2), sign=True)) == (
        "-1.50",
        "+0.00±0.50",
    )


def test_ticks_and_probabilities() -> None:
    assert [tick(value, "s") for value in (0, 10, 2.5, 1e3, 1.25e6)] == ["0 s", "10 s", "2.5 s", "1 ks", "1.25 Ms"]
    assert [probability(p) for p in (0.0009, 0.001, 0.85, 1.0)] == ["<0.001", "0.001", "0.850", "1.000"]
