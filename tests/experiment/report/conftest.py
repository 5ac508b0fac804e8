"""What tests of the report share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from siesta.experiment.report import paper
from tests.experiment.written_runs import CLASSES


@pytest.fixture(autouse=True, scope="package")
def _few_classes() -> Iterator[None]:
    """The toys stand beside the paper."""
    with pytest.MonkeyPatch.context() as patch:
        for dataset in paper.CLASSES:
            patch.setitem(paper.CLASSES, dataset, CLASSES)
        yield
