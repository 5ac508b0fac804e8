"""Prototypes are spread evenly, stay on the unit sphere, and are frozen at first."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from siesta.pretrain.prototypes import Prototypes, spread_directions


@pytest.mark.parametrize("seed", [0, 30, 119])  # a decomposition in single precision fails for the last two
@pytest.mark.parametrize(("count", "features"), [(1000, 128), (64, 64), (5, 16)])
def test_directions_are_unit_vectors_that_are_spread_evenly(count: int, features: int, seed: int) -> None:
    torch.manual_seed(seed)
    directions = spread_directions(count, features).double().numpy()
    assert np.linalg.norm(directions, axis=1) == pytest.approx(np.ones(count))
    energies = np.linalg.svd(directions, compute_uv=False) ** 2
    assert energies == pytest.approx(np.full(min(count, features), max(count / features, 1.0)), rel=1e-4)


def test_scores_are_cosines() -> None:
    prototypes = Prototypes(6, 4, thaw=0.0, still=0)
    embeddings = F.normalize(torch.rand(3, 4, generator=torch.Generator().manual_seed(0)))
    expected = F.cosine_similarity(embeddings[:, None], prototypes.directions[None], dim=2)
    torch.testing.assert_close(prototypes(embeddings), expected)


def test_directions_are_normalised_at_the_start_of_a_step() -> None:
    prototypes = Prototypes(6, 4, thaw=0.0, still=0)
    before = prototypes.directions.detach().clone()
    with torch.no_grad():
        prototypes.directions.mul_(3)
    prototypes.begin_step()
    torch.testing.assert_close(prototypes.directions.detach(), before)


def test_they_are_trained_after_a_fraction_of_the_run_and_a_number_of_steps() -> None:
    prototypes = Prototypes(6, 4, thaw=0.1, still=2)
    group = prototypes.param_group()
    assert [tuple(weights.shape) for weights in group.parameters] == [(6, 4)]
    factors = []
    for _ in range(3):
        prototypes.begin_step()
        factors.append((group.lr_factor(0.09), group.lr_factor(0.1)))
    assert factors == [(0, 0), (0, 0), (0, 1)]


def test_the_number_of_steps_is_part_of_a_checkpoint() -> None:
    prototypes, restored = (Prototypes(6, 4, thaw=0.0, still=1) for _ in range(2))
    prototypes.begin_step()
    prototypes.begin_step()
    restored.load_state_dict(prototypes.state_dict())
    assert restored.param_group().lr_factor(0.5) == 1
