"""DER with masks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from siesta.methods import METHODS
from siesta.methods.batch.der_pruned import sparsity
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.conftest import Template
from tests.methods.tiny import TINY


def test_sparsity_is_the_share_of_weights_that_masks_keep() -> None:
    masks = [torch.tensor([1.0, 0.5]), torch.tensor([0.0, 1.0, 0.25])]
    expected = (3 * 1.5 + 7 * 1.25) / (3 * 2 + 7 * 3)
    assert float(sparsity(masks, [3, 7])) == pytest.approx(expected)


def test_a_large_weight_of_sparsity_removes_channels(templates: dict[str, Template]) -> None:
    options: dict[str, Any] = {
        "epochs": 6,
        "first_epochs": 6,
        "weight_decay": 0.0,
        "first_weight_decay": 0.0,
        "lr": 0.05,
    }
    sparse = make(templates, "der_pruned", sparsity=200.0, **options)
    dense = make(templates, "der_pruned", sparsity=0.0, **options)
    for method in (sparse, dense):
        step(templates, method, FIRST)
        step(templates, method, SECOND)
    assert sparse.resources().parameters < 0.8 * dense.resources().parameters
    assert not any("logits" in name for name in sparse.state()), "the masks are gone"
    der = make(templates, "der")
    step(templates, der, FIRST)
    step(templates, der, SECOND)
    assert dense.resources().parameters == der.resources().parameters


def test_a_pruned_network_is_opened_again(templates: dict[str, Template], tmp_path: Path) -> None:
    method = make(templates, "der_pruned", sparsity=200.0, epochs=6, first_epochs=6, lr=0.05)
    step(templates, method, FIRST)
    method.save()
    shutil.copytree(str(method.workspace.store.path), tmp_path / "copy")
    opened = METHODS["der_pruned"].make(tmp_path / "copy", method.settings, 3)
    codes, _ = templates[TINY].samples([0, 1], 9)
    assert opened.predict_many(codes) == method.predict_many(codes)
    assert opened.resources().parameters == method.resources().parameters
    opened.close()
