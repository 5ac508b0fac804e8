"""Max loss prefers samples that are predicted wrongly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.contracts import Embedded
from siesta.policies import MaxLoss
from siesta.policies.max_loss import cross_entropy
from tests.policies.memories import draw, draw_counts, embedding, memory_of


def test_losses_equal_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    logits, rows = (30 * rng.normal(size=(50, 7))).astype(np.float32), rng.integers(7, size=50)
    expected = torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(rows), reduction="none")
    chunk = Embedded(np.arange(50), np.zeros((50, 1), np.float32), logits, rows)
    assert cross_entropy(chunk) == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-5)


def test_wrong_predictions_are_drawn_in_proportion_to_their_loss() -> None:
    memory = memory_of([100, 100])
    own = (memory.classes == 4).astype(int)
    wrong = np.arange(200) % 10 == 0
    logits = np.zeros((200, 2))
    logits[np.arange(200), own] = np.where(wrong, -2.0, 2.0)
    counts = draw_counts(memory, draw(MaxLoss(), embedding(memory, np.ones((200, 1)), logits), 20_000))
    losses = np.log1p(np.exp([2.0, -2.0]))  # of wrong and of right predictions
    assert counts[wrong].mean() / counts[~wrong].mean() == pytest.approx(losses[0] / losses[1], rel=0.1)
    assert counts[wrong].sum() / 20_000 > 0.5, "uniform draws would give them 0.1"
