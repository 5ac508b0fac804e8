from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

from siesta.errors import BadInput
from siesta.vectors import VectorInput

FOUR = VectorInput(4)


@pytest.mark.parametrize(
    "given", [[1, 2, 3, 4], (1.0, 2, 3, 4), np.arange(1, 5, dtype=np.uint8), np.array([1.0, 2, 3, 4])]
)
def test_numbers_of_any_real_type_become_float32(given: Any) -> None:
    read = FOUR.read(given)
    assert read.dtype == np.float32 and read.tolist() == [1, 2, 3, 4]
    assert FOUR.read(read) is read
    assert FOUR.batch([read, read]).shape == (2, *FOUR.shape) == (2, 1, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 2, 3], "this learner takes vectors of 4 numbers, and this one has shape (3,)"),
        (np.zeros((2, 4)), "has shape (2, 4): give one vector of that length at a time"),
        ([[1], [2, 3]], "a list of lists of several lengths"),
        ([1, 2, float("nan"), 4], "element 3 of the vector is nan: give finite numbers"),
        (np.array([1, -np.inf, 3, 4]), "element 2 of the vector is -inf"),
        ([1, 2, 3, 1e39], "element 4 of the vector is 1e+39"),
        (["a", "b", "c", "d"], "has other elements: give real numbers"),
        (np.ones(4, bool), "an array of bool has other elements"),
        (np.ones(4, complex), "an array of complex128 has other elements"),
        ([None] * 4, "an object of type list has other elements"),
        ([10**400] * 4, "an object of type list has other elements"),
        ("photo.jpg", "this learner takes vectors of 4 numbers, not text"),
        (None, "not an object of type NoneType"),
        (7, "not an object of type int"),
    ],
)
def test_what_is_no_vector_of_this_length_is_refused_in_a_sentence(given: Any, words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        FOUR.read(given)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5),
)


@settings(max_examples=60)
@given(JSON | arrays(scalar_dtypes(), array_shapes(max_dims=2, max_side=5)))
def test_anything_is_read_as_finite_numbers_or_refused(given: Any) -> None:
    try:
        read = FOUR.read(given)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert read.shape == (4,) and read.dtype == np.float32 and np.isfinite(read).all()
