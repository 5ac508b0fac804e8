"""Indicators of collapse and their warnings."""

from __future__ import annotations

import pytest
import torch

from siesta.pretrain.collapse import collapse_indicators, collapse_warning
from siesta.pretrain.contract import PretrainOutput


def _outcome(embedding: torch.Tensor, shares: torch.Tensor | None = None) -> PretrainOutput:
    return PretrainOutput(torch.zeros(()), embedding, shares)


def test_isotropic_embeddings_and_equal_prototypes_give_no_warning() -> None:
    rows = torch.randn(500, 64, generator=torch.Generator().manual_seed(0))
    found = collapse_indicators(_outcome(rows, torch.full((500, 10), 0.1)))
    assert found["feature_std"] == pytest.approx(1, abs=0.02) and found["prototype_entropy"] == pytest.approx(1)
    assert collapse_warning(found) is None


def test_equal_embeddings_give_a_warning() -> None:
    assert "all images look alike" in (collapse_warning(collapse_indicators(_outcome(torch.ones(8, 4)))) or "")


def test_a_single_prototype_gives_a_warning_warning() -> None:
    rows, shares = torch.eye(8), torch.zeros(8, 10)
    shares[:, 3] = 1
    assert "few prototypes are used" in (collapse_warning(collapse_indicators(_outcome(rows, shares))) or "")
