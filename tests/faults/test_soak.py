"""A soak, for a moment and for ten minutes: nothing that was acknowledged is lost, and nothing grows."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from tests.faults.ledger import CAPACITY, Observed, carry_out, choose, differences
from tests.faults.soak import SoakResult, soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and files are measured in /proc")

OPERATIONS = 50
SECONDS = 600
MAX_GROWTH = 20_000_000


def assert_sound(result: SoakResult) -> None:
    assert result.faults == []
    assert result.operations["learn"] and result.kills


def test_every_operation_does_what_the_soak_expects() -> None:
    rng = np.random.default_rng(6)
    done: set[str] = set()
    most = 0
    with Siesta.create(":memory:", memory=f"{CAPACITY} samples", image_size=32, engine="torch") as learner:
        state = Observed.of(learner)
        for number in range(0, 8 * OPERATIONS, 8):
            operation = choose(state, number, rng)
            carry_out(learner, operation)
            before, state = state, Observed.of(learner)
            assert differences(before, operation, state) == []
            changed = operation.name not in ("ask", "roll_back")
            assert not changed or differences(before, None, state), "an operation that was lost is noticed"
            done.add(operation.name)
            most = max(most, len(state.labels))
    assert most == CAPACITY, "samples were evicted"
    assert len(done) == 9, "every operation was taken"


@pytest.mark.slow
def test_a_learner_survives_a_few_operations_and_kills(tmp_path: Path) -> None:
    assert_sound(soak(tmp_path / "s", lambda completed: completed / 40))


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_a_learner_survives_ten_minutes_and_its_processes_do_not_grow(tmp_path: Path) -> None:
    start = time.monotonic()
    result = soak(tmp_path / "s", lambda _: (time.monotonic() - start) / SECONDS)
    assert_sound(result)
    for usage in result.growth().values():
        assert usage.memory < MAX_GROWTH and usage.files == 0
