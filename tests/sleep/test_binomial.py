"""Bounds on a proportion: against another implementation, and at their edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from siesta.sleep.binomial import at_most, interval, interval_of, percent_with_interval


@given(st.data(), st.integers(1, 1500), st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_is_that_of_clopper_and_pearson(data: st.DataObject, samples: int, confidence: float) -> None:
    count = data.draw(st.integers(0, samples))
    expected = proportion_confint(count, samples, alpha=1 - confidence, method="beta")
    assert interval(count, samples, confidence) == pytest.approx(expected, abs=1e-9)


def test_probabilities_of_few_events() -> None:
    assert at_most(0, 29, 0.1) == pytest.approx(0.9**29) and at_most(0, 29, 0.1) < 0.05 < at_most(0, 28, 0.1)
    assert [at_most(count, 3, 0.5) for count in range(4)] == pytest.approx([1 / 8, 4 / 8, 7 / 8, 1])
    assert (at_most(1, 5, 0.0), at_most(1, 5, 1.0), at_most(5, 5, 1.0)) == (1.0, 0.0, 1.0)


def test_an_accuracy_without_samples_has_no_interval() -> None:
    assert interval_of(None, 20) is None and interval_of(0.5, 0) is None
    assert interval_of(0.95, 20) == interval(19, 20)
    assert percent_with_interval(1.0, 10) == "100.0 % (95 % interval 69 to 100 %)"
