"""End-to-End against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.methods.batch.end_to_end import end_to_end_loss
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.batch.test_distillation import log_softmax, numbers
from tests.methods.conftest import Template


def test_every_steps_classes_are_distilled_by_themselves() -> None:
    logits, old, rows = numbers(4, 6), numbers(4, 5, seed=1), np.array([0, 5, 3, 2])
    cross = -log_softmax(logits)[np.arange(4), rows].mean()
    kept = [
        -(np.exp(log_softmax(old[:, part] / 2)) * log_softmax(logits[:, part] / 2)).sum(axis=1).mean()
        for part in (slice(0, 3), slice(3, 5))
    ]
    new, own, previous = (torch.from_numpy(part) for part in (logits, rows, old))
    assert float(end_to_end_loss(new, own, previous, [3, 2], 2.0)) == pytest.approx(cross + np.mean(kept))
    assert float(end_to_end_loss(new, own, None, [], 2.0)) == pytest.approx(cross)


def test_the_tuning_is_balanced(templates: dict[str, Template]) -> None:
    method = make(templates, "end_to_end", exemplars=4, tuning_epochs=3)
    step(templates, method, FIRST)
    updates = method.resources().updates
    step(templates, method, SECOND)
    assert method.resources().updates - updates == 2 * (len(SECOND) + 4) + 3 * 8
