"""Fixtures for all tests of the report."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from siesta.experiment.report import published
from tests.experiment.written_runs import CLASSES


@pytest.fixture(autouse=True, scope="package")
def _small_and_fast() -> Iterator[None]:
    """Compare toy runs with the paper, and keep statsmodels from collecting garbage at each of its tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        for dataset in published.CLASS_COUNTS:
            patch.setitem(published.CLASS_COUNTS, dataset, CLASSES)
        yield
