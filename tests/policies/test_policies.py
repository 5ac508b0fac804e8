"""Every policy: valid ids, exact budgets; and the balance that each one promises."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.contracts import Ids, Memory, Policy
from siesta.errors import BadInput
from siesta.policies import POLICIES, BalancedUniform, Uniform, explain_policies, make_policy
from siesta.sleep import batches


def memory_of(sizes: list[int]) -> Memory:
    """A memory with that many samples of each class; ids are spread out, classes are not in order."""
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32) * 3 + 1, sizes)
    order = np.random.default_rng(0).permutation(len(classes))
    zeros = np.zeros(len(classes), dtype=np.int32)
    return Memory(np.arange(len(classes), dtype=np.int64)[order] * 5 + 2, classes[order], zeros, zeros[:0])


def draw(policy: Policy, memory: Memory, count: int, seed: int = 0) -> Ids:
    """The first `count` picks, through the batches of the sleep loop."""
    return np.concatenate(list(batches(policy.picks(memory, np.random.default_rng(seed)), 7, count)))


def classes_of(memory: Memory, ids: Ids) -> npt.NDArray[np.int32]:
    lookup = dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True))
    return np.array([lookup[sample_id] for sample_id in ids.tolist()], dtype=np.int32)


sizes = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@pytest.mark.parametrize("name", POLICIES)
@given(sizes=sizes, count=st.integers(1, 300))
def test_picks_are_stored_ids_and_exactly_as_many_as_asked_for(name: str, sizes: list[int], count: int) -> None:
    memory = memory_of(sizes)
    picks = draw(make_policy(name), memory, count)
    assert len(picks) == count and set(picks.tolist()) <= set(memory.ids.tolist())


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_seed_gives_the_same_picks(name: str) -> None:
    memory = memory_of([5, 9, 2])
    first, same, other = (draw(make_policy(name), memory, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@given(sizes=sizes, count=st.integers(1, 400))
def test_balanced_uniform_is_balanced_at_every_moment(sizes: list[int], count: int) -> None:
    memory = memory_of(sizes)
    picks = draw(BalancedUniform(), memory, count)
    _, per_class = np.unique(classes_of(memory, picks), return_counts=True)
    assert len(per_class) == min(count, len(sizes)) and per_class.max() - per_class.min() <= 1
    for class_id in np.unique(memory.classes):
        times = [int((picks == sample).sum()) for sample in memory.ids[memory.classes == class_id]]
        assert max(times) - min(times) <= 1, "a sample repeats before its class was gone through"


@given(sizes=sizes, count=st.integers(1, 400))
def test_uniform_goes_through_everything_before_anything_repeats(sizes: list[int], count: int) -> None:
    memory = memory_of(sizes)
    picks = draw(Uniform(), memory, count)
    times = [int((picks == sample).sum()) for sample in memory.ids]
    assert max(times) - min(times) <= 1


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
