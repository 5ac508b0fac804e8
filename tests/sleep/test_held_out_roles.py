"""Which held-out samples decide about a sleep, and which only measure it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from siesta import Siesta
from siesta.sleep.budget import Budget
from siesta.sleep.held_out import HeldOutSamples
from siesta.sleep.held_out_roles import HeldOutRoles
from siesta.sleep.round_limits import FEWEST_HELD_OUT
from tests.stores import store_of


def held_out(count: int, every: int = 4) -> HeldOutSamples:
    ids = np.arange(20, 20 + every * count, every, dtype=np.int64)
    return HeldOutSamples(ids, (ids % 7).astype(np.int32))


def test_every_role_has_samples_of_its_own_where_there_are_enough() -> None:
    samples = held_out(10 * FEWEST_HELD_OUT)
    roles = HeldOutRoles.of(samples, Budget())
    assert roles.judges is not None and roles.independent and not roles.optimistic
    parts = [roles.judges.ids, roles.guards.ids, roles.measured.ids]
    assert sorted(np.concatenate(parts)) == samples.ids.tolist()
    assert min(map(len, parts)) >= FEWEST_HELD_OUT and len(parts[2]) > max(map(len, parts[:2]))
    budgeted = HeldOutRoles.of(samples, Budget(updates=1))
    assert budgeted.judges is None and budgeted.independent
    assert budgeted.measured.ids.tolist() == roles.measured.ids.tolist(), "no sample that ever decided is measured"
    assert sorted([*budgeted.guards.ids, *budgeted.measured.ids]) == samples.ids.tolist()


def test_judges_also_guard_before_measured_samples_decide() -> None:
    roles = HeldOutRoles.of(held_out(3 * FEWEST_HELD_OUT), Budget())
    assert roles.judges is roles.guards and roles.independent and not roles.optimistic
    assert not set(roles.guards.ids) & set(roles.measured.ids)


@pytest.mark.parametrize(("count", "judged"), [(FEWEST_HELD_OUT, True), (FEWEST_HELD_OUT - 1, False)])
def test_few_samples_play_all_roles_and_are_called_optimistic(count: int, judged: bool) -> None:
    samples = held_out(count)
    roles = HeldOutRoles.of(samples, Budget())
    assert roles.judges is (samples if judged else None)
    assert roles.guards is roles.measured is samples
    assert roles.optimistic and not roles.independent
    assert HeldOutRoles.of(samples, Budget(updates=1)).optimistic, "they decide whether the weights are used"
    assert not HeldOutRoles.of(held_out(0), Budget()).optimistic, "no figure is shown"


@pytest.fixture(scope="module")
def learner() -> Iterator[Siesta]:
    """Return a learner of twenty classes with forty random samples each, of which five are held out."""
    with Siesta.create(":memory:", image_size=32) as made:
        codes = np.random.default_rng(0).integers(0, 256, (800, len(made.encode([np.zeros((32, 32, 3), np.uint8)])[0])))
        made.learn_encoded(codes.astype(np.uint8), [f"class {number // 40}" for number in range(800)])
        yield made


def test_guards_and_measured_samples_are_measured_apart(learner: Siesta) -> None:
    store = store_of(learner)
    samples = HeldOutSamples.choose(store, newest=800, seed=1)
    roles = HeldOutRoles.of(samples, Budget(updates=1))
    found, measured = roles.measure(store, learner.pipeline, learner.head)
    assert (found.guards.samples, found.measured.samples) == (len(roles.guards.ids), len(roles.measured.ids))
    assert found.measured.independent and measured.independent and len(samples.ids) == 100
    _, fewer = roles.measure(store, learner.pipeline, learner.head, seconds=1e-9)
    assert (len(fewer.guards.ids), len(fewer.measured.ids)) == (32, 32), "one batch of each"
    few = HeldOutRoles.of(samples.first(10), Budget(updates=1))
    found, _ = few.measure(store, learner.pipeline, learner.head)
    assert found.guards is found.measured and not found.measured.independent


def test_a_sleep_shows_what_decided_nothing(learner: Siesta) -> None:
    report = learner.sleep(updates=4, batch_size=4, tolerance=1)
    assert not report.optimistic and report.confidence["independent"]
    assert 30 < report.held_out < 70, "about half of a hundred"
