"""Every selection of the registry: distinct samples, determinism, and prefixes that do not depend on the count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.errors import BadInput
from siesta.selections import SELECTIONS

every_selection = pytest.mark.parametrize("name", SELECTIONS)


def chosen(name: str, features: npt.NDArray[np.float32], count: int, seed: int = 0) -> list[int]:
    selected = SELECTIONS[name](features, count, np.random.default_rng(seed))
    assert selected.dtype == np.int64
    return [int(row) for row in selected]


def drawn(samples: int, width: int = 4, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((samples, width)).astype(np.float32)


@every_selection
@given(samples=st.integers(0, 30), share=st.floats(0, 1))
def test_as_many_distinct_samples_as_wanted_are_chosen(name: str, samples: int, share: float) -> None:
    count = round(share * samples)
    selected = chosen(name, drawn(samples), count)
    assert len(set(selected)) == len(selected) == count and set(selected) <= set(range(samples))


@every_selection
def test_fewer_samples_are_the_first_of_more(name: str) -> None:
    features = drawn(20)
    assert chosen(name, features, 7) == chosen(name, features, 20)[:7]


@every_selection
def test_it_is_deterministic_and_leaves_the_features_alone(name: str) -> None:
    features = drawn(20)
    before = features.copy()
    assert chosen(name, features, 20) == chosen(name, features, 20)
    assert np.array_equal(features, before)


@every_selection
def test_equal_samples_are_chosen_once_each(name: str) -> None:
    assert sorted(chosen(name, np.ones((6, 3), dtype=np.float32), 6)) == list(range(6))


@every_selection
def test_every_name_is_explained(name: str) -> None:
    assert SELECTIONS.summaries()[name].strip()


def test_an_unknown_name_is_refused_with_the_choices() -> None:
    with pytest.raises(BadInput, match="there is no selection 'best': choose one of random, herding"):
        SELECTIONS.check("best")
