"""Every policy of the registry: valid ids, determinism, embeddings only when needed; and balance where promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.policies import POLICIES, make_policy
from tests.policies.memories import assert_balanced, draw, draw_counts, embedding, memory_of, random_embedding

WITHOUT_EMBEDDINGS = {"balanced_uniform", "uniform", "min_rehearsal"}


def embedded_by(name: str) -> list[int]:
    """Return the ids that a policy has embedded once it has yielded its first ids, in the order of the requests."""
    requested: list[int] = []
    memory = random_embedding(memory_of([30, 4, 1]), requested=requested)
    sample_ids = make_policy(name).sample_ids(memory, np.random.default_rng(0))
    assert requested == [], "nothing is embedded before the first id is needed"
    next(sample_ids), next(sample_ids)
    return requested


WITH_EMBEDDINGS = [name for name in POLICIES if embedded_by(name)]
BALANCED = ["balanced_prototypical", "balanced_uniform", "grasp"]

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@pytest.mark.parametrize("name", POLICIES)
@given(sizes=sizes, count=st.integers(1, 300))
def test_ids_are_stored_and_there_are_as_many_as_the_budget(name: str, sizes: list[int], count: int) -> None:
    memory = random_embedding(memory_of(sizes))
    sample_ids = draw(make_policy(name), memory, count)
    assert len(sample_ids) == count and set(sample_ids.tolist()) <= set(memory.ids.tolist())


@pytest.mark.parametrize("name", POLICIES)
def test_the_seed_decides(name: str) -> None:
    memory = random_embedding(memory_of([5, 9, 2]))
    first, same, other = (draw(make_policy(name), memory, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@pytest.mark.parametrize("name", BALANCED)
@given(sizes=sizes, count=st.integers(1, 400))
def test_balanced_policies_are_balanced_at_every_moment(name: str, sizes: list[int], count: int) -> None:
    memory = random_embedding(memory_of(sizes))
    assert_balanced(memory, draw(make_policy(name), memory, count))


@pytest.mark.parametrize("name", POLICIES)
def test_samples_are_embedded_once_or_never(name: str) -> None:
    requested = embedded_by(name)
    assert sorted(requested) in ([], sorted(memory_of([30, 4, 1]).ids.tolist()))
    assert not (requested and name in WITHOUT_EMBEDDINGS)


@pytest.mark.parametrize("name", WITH_EMBEDDINGS)
def test_samples_may_be_removed_while_a_policy_plans(name: str) -> None:
    memory = memory_of([30, 4, 1])
    every_id = memory.ids.tolist()
    for removed in (every_id[::3], every_id):
        sample_ids = draw(make_policy(name), random_embedding(memory, removed=removed), 200)
        assert len(sample_ids) == 200 and set(sample_ids.tolist()) <= set(every_id)


@pytest.mark.parametrize("name", WITH_EMBEDDINGS)
def test_a_memory_without_embeddings_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="embed"):
        next(make_policy(name).sample_ids(memory_of([3, 3]), np.random.default_rng(0)))


@pytest.mark.parametrize("name", WITH_EMBEDDINGS)
def test_identical_embeddings_give_uniform_draws(name: str) -> None:
    memory = memory_of([20, 20])
    identical = embedding(memory, np.ones((40, 3)))
    counts = draw_counts(memory, draw(make_policy(name), identical, 4000))
    assert counts.min() > 60 and counts.max() < 140
