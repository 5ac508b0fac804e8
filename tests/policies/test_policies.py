"""Every policy: valid ids, exact budgets; and the balance that each one promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.contracts import Policy
from siesta.errors import BadInput
from siesta.policies import POLICIES, BalancedUniform, Uniform, explain_policies, make_policy
from tests.policies.memories import assert_balanced, classes_of, draw, embedding, memory_of, random_embedding, times

BLIND = {"balanced_uniform", "uniform", "min_rehearsal"}  # these do without embeddings
BALANCED = ["balanced_uniform", "balanced_prototypical", "grasp"]

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@pytest.mark.parametrize("name", POLICIES)
@given(sizes=sizes, count=st.integers(1, 300))
def test_picks_are_stored_ids_and_exactly_as_many_as_asked_for(name: str, sizes: list[int], count: int) -> None:
    memory = random_embedding(memory_of(sizes))
    picks = draw(make_policy(name), memory, count)
    assert len(picks) == count and set(picks.tolist()) <= set(memory.ids.tolist())


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_seed_gives_the_same_picks(name: str) -> None:
    memory = random_embedding(memory_of([5, 9, 2]))
    first, same, other = (draw(make_policy(name), memory, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@pytest.mark.parametrize("name", BALANCED)
@given(sizes=sizes, count=st.integers(1, 400))
def test_balanced_policies_are_balanced_at_every_moment(name: str, sizes: list[int], count: int) -> None:
    memory = random_embedding(memory_of(sizes))
    assert_balanced(memory, draw(make_policy(name), memory, count))


@pytest.mark.parametrize("name", POLICIES)
def test_embeddings_are_asked_for_once_or_not_at_all(name: str) -> None:
    asked: list[int] = []
    memory = random_embedding(memory_of([30, 4, 1]), asked=asked)
    picks = make_policy(name).picks(memory, np.random.default_rng(0))
    assert asked == [], "nothing is embedded before the first pick is wanted"
    next(picks), next(picks)
    assert sorted(asked) == ([] if name in BLIND else sorted(memory.ids.tolist()))


@pytest.mark.parametrize("name", sorted(set(POLICIES) - BLIND))
def test_samples_that_go_while_it_plans_do_no_harm(name: str) -> None:
    memory = memory_of([30, 4, 1])
    some, everything = memory.ids[::3].tolist(), memory.ids.tolist()
    for gone in (some, everything):
        picks = draw(make_policy(name), random_embedding(memory, gone=gone), 200)
        assert len(picks) == 200 and set(picks.tolist()) <= set(everything)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - BLIND))
def test_a_memory_without_embeddings_says_so(name: str) -> None:
    with pytest.raises(ValueError, match="has no embeddings"):
        next(make_policy(name).picks(memory_of([3, 3]), np.random.default_rng(0)))


@pytest.mark.parametrize("name", sorted(set(POLICIES) - BLIND))
def test_embeddings_that_are_all_alike_leave_nothing_to_prefer(name: str) -> None:
    memory = memory_of([20, 20])
    same = embedding(memory, np.ones((40, 3)))
    per_sample = times(memory, draw(make_policy(name), same, 4000))
    assert per_sample.min() > 60 and per_sample.max() < 140


@given(sizes=sizes, count=st.integers(1, 400))
def test_uniform_goes_through_everything_before_anything_repeats(sizes: list[int], count: int) -> None:
    memory = memory_of(sizes)
    picks = draw(Uniform(), memory, count)
    per_sample = times(memory, picks)
    assert per_sample.max() - per_sample.min() <= 1


def test_balanced_uniform_differs_from_uniform_on_a_long_tail() -> None:
    memory = memory_of([900, 90, 10])
    rare = [
        float((classes_of(memory, draw(policy, memory, 300)) == 7).mean()) for policy in (BalancedUniform(), Uniform())
    ]
    assert rare[0] == pytest.approx(1 / 3, abs=0.01) and rare[1] < 0.05


def test_classes_of_a_round_come_in_random_order() -> None:
    memory = memory_of([50] * 4)
    rounds = classes_of(memory, draw(BalancedUniform(), memory, 160)).reshape(-1, 4)
    assert {tuple(sorted(row)) for row in rounds.tolist()} == {(1, 4, 7, 10)}
    assert len({tuple(row) for row in rounds.tolist()}) > 10


def test_names_and_own_objects() -> None:
    own = Uniform()
    assert make_policy(own) is own
    assert all(isinstance(make_policy(name), Policy) and name in explain_policies() for name in POLICIES)
    with pytest.raises(BadInput, match="there is no policy 'best': choose one of balanced_uniform"):
        make_policy("best")
