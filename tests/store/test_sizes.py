"""Byte sizes: MB is 10^6, MiB is 2^20."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siesta.errors import BadInput
from siesta.store import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("64MB", 64_000_000),
        ("64 mb", 64_000_000),
        (" 1.5GiB ", 1_610_612_736),
        ("2KiB", 2048),
        ("3TB", 3 * 10**12),
        ("0", 0),
        ("17", 17),
        ("17B", 17),
        (17, 17),
    ],
)
def test_sizes_with_units_are_parsed(written: str | int, count: int) -> None:
    assert parse_bytes(written) == count


def test_a_number_of_samples_is_a_size_if_the_bytes_of_one_are_given() -> None:
    assert parse_bytes("500 samples", 1600) == 800_000
    with pytest.raises(BadInput, match="64MB"):
        parse_bytes("500 samples")


@pytest.mark.parametrize("written", ["", "MB", "-5", "-5MB", "1.5.2MB", "64 M B", "64XB", "1e3", "nan", "inf", "six"])
def test_other_text_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(BadInput, match="64MB"):
        parse_bytes(written)


@given(st.integers(0, 10**18))
@example(2**53 + 1)
def test_a_number_without_unit_is_exact(count: int) -> None:
    assert parse_bytes(str(count)) == count


def test_a_size_beyond_the_range_of_floats_does_not_crash() -> None:
    with contextlib.suppress(BadInput):
        assert parse_bytes("9" * 400) > 10**399


@given(st.integers(0, 10**14))
@example(999_950)  # not 1000.0 KB
def test_a_formatted_size_is_close_to_its_bytes(count: int) -> None:
    shown = format_bytes(count)
    assert parse_bytes(shown) == pytest.approx(count, rel=0.051)
    assert len(shown) <= len("999.9 MB")
