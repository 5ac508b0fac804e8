"""The heads by name."""

from __future__ import annotations

import pytest

from siesta.errors import BadInput
from siesta.head.kinds import HEADS, check_head, head_of


def test_a_learner_of_version_0_1_gets_the_default_head() -> None:
    assert head_of({}) == "discriminant"
    assert head_of({"head": "cosine"}) == "cosine"
    assert head_of({"head": "discriminant"}) == "discriminant"


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    for name in HEADS:
        check_head(name)
    with pytest.raises(BadInput, match="no head 'linear': choose one of cosine, discriminant"):
        check_head("linear")
