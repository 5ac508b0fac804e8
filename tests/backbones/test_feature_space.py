"""Feature spaces by name."""

from __future__ import annotations

import pytest

from siesta.backbones import DEFAULT_SPACE, SPACES, make_space
from siesta.errors import BadInput


def test_names_say_what_a_space_does() -> None:
    assert {(space.linear, space.centred) for space in SPACES.values()} == {
        (linear, centred) for linear in (False, True) for centred in (False, True)
    }
    for name, space in SPACES.items():
        assert make_space(name) is space
        assert space.linear == ("linear" in name) and space.centred == ("centred" in name)
    assert make_space(DEFAULT_SPACE).centred


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="no space 'outer': choose one of centred, plain, linear, linear_centred"):
        make_space("outer")
