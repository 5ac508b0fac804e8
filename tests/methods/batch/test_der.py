"""DER: old networks do not change."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from siesta.methods.batch.heads import weight_ratio
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.conftest import Template


def test_old_networks_stay_as_they_are(templates: dict[str, Template]) -> None:
    method = make(templates, "der")
    step(templates, method, FIRST)
    first = copy.deepcopy(method.network.top.branches[0].state_dict())
    step(templates, method, SECOND)
    old, new = (branch.state_dict() for branch in method.network.top.branches)
    assert all(torch.equal(first[name], old[name]) for name in first), "their norms neither"
    assert any(not torch.equal(first[name], new[name]) for name in first)
    assert method.network.output.weight.shape == (4, 32)


@pytest.mark.parametrize(("epochs", "aligned"), [(0, True), (2, False)])
def test_the_output_is_aligned_or_trained_anew(templates: dict[str, Template], epochs: int, aligned: bool) -> None:
    method = make(templates, "der", classifier_epochs=epochs, lr=0.3)
    step(templates, method, FIRST)
    step(templates, method, SECOND)
    ratio = weight_ratio(method.network.output.weight, 2)
    assert np.isclose(ratio, 1, atol=1e-4) == aligned
