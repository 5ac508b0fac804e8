"""Min margin prefers samples that the network is unsure of, right or wrong."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.contracts import Embedded
from siesta.policies import MinMargin
from siesta.policies.min_margin import uncertainty
from tests.policies.memories import draw, draw_counts, embedding, memory_of


@pytest.mark.parametrize("classes", [1, 2, 9])
def test_uncertainty_is_one_minus_the_gap_of_sorted_probabilities(classes: int) -> None:
    logits = (3 * np.random.default_rng(0).normal(size=(40, classes))).astype(np.float32)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    best = np.sort(np.pad(probabilities, ((0, 0), (1, 0))), axis=1)[:, -2:]
    chunk = Embedded(np.arange(40), np.zeros((40, 1), np.float32), logits, np.zeros(40, np.int64))
    assert uncertainty(chunk) == pytest.approx(1 - (best[:, 1] - best[:, 0]), abs=1e-5)


def test_uncertain_samples_are_drawn_more_often_whatever_their_class() -> None:
    memory = memory_of([150, 150, 150])
    unsure = np.arange(450) % 15 == 0
    logits = np.tile([5.0, 0.0, 0.0], (450, 1))
    logits[unsure] = [5.0, 4.9, 0.0]
    counts = draw_counts(memory, draw(MinMargin(), embedding(memory, np.ones((450, 1)), logits), 20_000))
    assert counts[unsure].sum() / 20_000 > 0.7, "uniform draws would give them 0.07"
    by_class = [counts[unsure & (memory.classes == class_id)].mean() for class_id in (1, 4, 7)]
    assert max(by_class) / min(by_class) < 1.2
