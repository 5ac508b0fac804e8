"""WA: aligned rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.conftest import Template


def test_rows_of_new_classes_have_the_mean_length_of_old_ones(templates: dict[str, Template]) -> None:
    method = make(templates, "wa", lr=0.5)
    step(templates, method, FIRST)
    lengths = np.linalg.norm(method.network.output.weight.detach().numpy(), axis=1)
    assert lengths[0] != pytest.approx(lengths[1]), "the first step is not aligned"
    step(templates, method, SECOND)
    lengths = np.linalg.norm(method.network.output.weight.detach().numpy(), axis=1)
    assert lengths[:2].mean() == pytest.approx(lengths[2:].mean(), rel=1e-5)
