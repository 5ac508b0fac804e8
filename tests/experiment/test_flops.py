"""The rate and the forecast against sums written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.contracts import Resources
from siesta.errors import BadInput
from siesta.experiment.flops import achieved_gflops, extrapolate


def spent(updates: int, wake: float, sleep: float) -> Resources:
    flops = {"wake": wake, "sleep": sleep, "inference": 1e12}
    return Resources(updates, 7, {}, flops, {phase: value / 4 for phase, value in flops.items()})


def test_achieved_gflops_exclude_inference() -> None:
    resources = Resources(1, 1, {}, {"wake": 3e9, "sleep": 9e9, "inference": 5e9}, {"wake": 2.0, "sleep": 1.0})
    assert achieved_gflops(resources) == pytest.approx(4)
    assert achieved_gflops(Resources(0, 1, {}, {}, {})) is None


@given(
    every=st.integers(1, 50), sleeps=st.integers(1, 9), to=st.integers(1, 10**7), m=st.integers(0, 10**6),
    sample=st.integers(1, 10**6), update=st.integers(1, 10**6),
)  # fmt: skip
def test_a_method_that_sleeps(every: int, sleeps: int, to: int, m: int, sample: int, update: int) -> None:
    """Measured over whole days, forecast for any length: each sample once, m updates for each day begun."""
    samples = every * sleeps
    found = extrapolate(spent(m * sleeps, sample * samples, update * m * sleeps), samples, to, every)
    days = to // every + (to % every > 0)
    assert found.sleeps == days
    assert found.updates == pytest.approx(m * days)
    assert found.flops == pytest.approx(sample * to + update * m * days)
    assert found.seconds == pytest.approx(found.flops / 4)


@given(st.integers(1, 10**6), st.integers(1, 10**8), st.integers(0, 50))
def test_a_method_that_rehearses_with_each_sample(samples: int, to: int, r: int) -> None:
    found = extrapolate(spent(samples * (r + 1), 11.0 * samples * (r + 1), 0), samples, to)
    assert (found.samples, found.sleeps) == (to, 0)
    assert found.updates == pytest.approx(to * (r + 1))
    assert found.flops == pytest.approx(11 * to * (r + 1))


@given(st.integers(1, 10**6), st.integers(1, 100), st.one_of(st.none(), st.integers(1, 10**6)))
def test_no_extrapolation_is_the_measurement(samples: int, updates: int, every: int | None) -> None:
    resources = spent(updates, 3e9, 5e9)
    found = extrapolate(resources, samples, samples, every)
    assert (found.updates, found.flops, found.seconds) == pytest.approx((updates, 8e9, 2e9))


@pytest.mark.parametrize(("samples", "to", "every"), [(0, 1, None), (1, 0, None), (1, 1, 0)])
def test_empty_streams_are_refused(samples: int, to: int, every: int | None) -> None:
    with pytest.raises(BadInput, match="at least one sample"):
        extrapolate(spent(1, 1, 1), samples, to, every)
