"""Learning-rate schedules against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from siesta.pretrain.contract import ParamGroup, TrainingRecipe, cosine_schedule


def test_the_learning_rate_falls_along_a_cosine_to_its_final_value() -> None:
    swav = TrainingRecipe(lr=0.6, final_lr_factor=0.001)
    assert [0.6 * swav.lr_factor(fraction) for fraction in (0, 0.5, 1)] == pytest.approx([0.6, 0.3003, 0.0006])


def test_warmup_is_linear_and_the_cosine_starts_after_it() -> None:
    recipe = TrainingRecipe(lr=1.0, warmup=0.1)
    assert [recipe.lr_factor(fraction) for fraction in (0, 0.05, 0.1, 0.55, 1)] == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_a_cosine_schedule_is_a_half_cosine_in_either_direction() -> None:
    fractions = np.linspace(0, 1, 11)
    expected = 0.5 + 0.25 * (1 + np.cos(np.pi * fractions))
    assert [cosine_schedule(1.0, 0.5, fraction) for fraction in fractions] == pytest.approx(expected)
    assert cosine_schedule(0.99, 1.0, 0.5) == pytest.approx(0.995)
    assert cosine_schedule(1.0, 0.5, 1.2) == pytest.approx(0.5), "a run by time may end a little late"


def test_parameters_have_the_full_learning_rate_by_default() -> None:
    group = ParamGroup([nn.Parameter(torch.ones(1))])
    assert {group.lr_factor(fraction) for fraction in (0.0, 0.5, 1.0)} == {1.0}
