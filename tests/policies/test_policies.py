"""The registry of policies: names, help text and objects of the caller's own."""

from __future__ import annotations

import pytest

from siesta.contracts import Policy
from siesta.errors import BadInput
from siesta.policies import DEFAULT_POLICY, POLICIES, Uniform, explain_policies, make_policy


@pytest.mark.parametrize("name", POLICIES)
def test_every_name_makes_a_policy_and_is_explained(name: str) -> None:
    policy = make_policy(name)
    assert isinstance(policy, Policy) and type(policy) is POLICIES[name]
    assert f"{name}: " in explain_policies()


def test_a_policy_object_is_used_as_it_is() -> None:
    policy = Uniform()
    assert make_policy(policy) is policy


def test_the_default_is_in_the_registry() -> None:
    assert DEFAULT_POLICY in POLICIES


def test_an_unknown_name_is_refused_with_the_choices() -> None:
    with pytest.raises(BadInput, match="there is no policy 'best': choose one of balanced_uniform"):
        make_policy("best")
