"""A service under hostile clients stays within its memory and answers the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults.clients import attack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")


@pytest.mark.slow
def test_a_service_under_hostile_clients_stays_small_and_answers_the_others(tmp_path: Path) -> None:
    result = attack(tmp_path / "attacked.siesta")
    assert result.memory < 1_000_000_000
    assert result.seconds < 2
    assert set(result.answers) <= {200, 429} and result.answers[200]
    assert result.large == [200, 200]
