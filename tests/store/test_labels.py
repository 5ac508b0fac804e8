"""Validation and normalisation of labels."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.errors import BadInput
from siesta.store import clean_label


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("robin", "robin"),
        ("  robin\n", "robin"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("Robin", "Robin"),
        ("[red]", "[red]"),
        ("a 'quoted' \"one\"", "a 'quoted' \"one\""),
        ("深い青", "深い青"),
        ("🐦\u200d⬛", "🐦\u200d⬛"),
        ("x" * 200, "x" * 200),
        (" " + "x" * 200 + " ", "x" * 200),
    ],
)
def test_valid_labels_are_normalised(written: str, kept: str) -> None:
    assert clean_label(written) == kept


@pytest.mark.parametrize(
    "written", ["", " ", "\t\n", "x" * 201, "a\0b", "a\nb", "a\tb", "a\x7fb", "a\u2028b", "a\udcffb", "\x1b[31mred"]
)
def test_invalid_labels_are_refused(written: str) -> None:
    with pytest.raises(BadInput) as caught:
        clean_label(written)
    str(caught.value).encode("utf-8")  # can be shown anywhere


@pytest.mark.parametrize("written", [None, 3, b"robin", ["robin"]])
def test_other_types_are_refused(written: Any) -> None:
    with pytest.raises(BadInput, match="a label is text"):
        clean_label(written)


@given(st.text(max_size=210))
def test_a_normalised_label_stays_the_same(text: str) -> None:
    try:
        label = clean_label(text)
    except BadInput:
        return
    assert clean_label(label) == label
    assert 1 <= len(label) <= 200
    assert label == label.strip()
    assert unicodedata.is_normalized("NFC", label)
    label.encode("utf-8")
