"""Collapse is seen, and said."""

from __future__ import annotations

import pytest
import torch

from siesta.pretrain.contract import Outcome
from siesta.pretrain.watch import collapse, watched


def _outcome(embedding: torch.Tensor, shares: torch.Tensor | None = None) -> Outcome:
    return Outcome(torch.zeros(()), embedding, shares)


def test_spread_embeddings_on_even_prototypes_are_well() -> None:
    rows = torch.randn(500, 64, generator=torch.Generator().manual_seed(0))
    found = watched(_outcome(rows, torch.full((500, 10), 0.1)))
    assert found["feature_std"] == pytest.approx(1, abs=0.02) and found["prototype_entropy"] == pytest.approx(1)
    assert collapse(found) is None


def test_one_point_is_collapse() -> None:
    assert "all pictures look alike" in (collapse(watched(_outcome(torch.ones(8, 4)))) or "")


def test_one_prototype_is_collapse() -> None:
    rows, shares = torch.eye(8), torch.zeros(8, 10)
    shares[:, 3] = 1
    assert "few prototypes are used" in (collapse(watched(_outcome(rows, shares))) or "")
