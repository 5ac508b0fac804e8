"""LARC against its equations."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from siesta.pretrain.contract import ParamGroup, TrainingRecipe
from siesta.pretrain.larc import make_optimizer


def _weights(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor([values]))


def _step(
    optimizer: torch.optim.Optimizer, weights: nn.Parameter, gradient: list[float], fraction: float = 0.5
) -> None:
    weights.grad = torch.tensor([gradient])
    optimizer.prepare(0.5, fraction)  # type: ignore[attr-defined]
    optimizer.step()


def test_two_steps_match_numpy() -> None:
    weights = _weights(3.0, 4.0)
    optimizer = make_optimizer([ParamGroup([weights])], TrainingRecipe(lr=0.5, weight_decay=0.1))
    w, momentum = np.array([3.0, 4.0]), np.zeros(2)
    for gradient in ([0.0, 2.0], [1.0, -1.0]):
        _step(optimizer, weights, gradient)
        g = np.array(gradient)
        trust = 0.001 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w) + 1e-8)
        momentum = 0.9 * momentum + trust * (g + 0.1 * w)
        w = w - 0.5 * momentum
    np.testing.assert_allclose(weights.detach().numpy()[0], w, rtol=1e-6)


def test_the_length_of_a_gradient_does_not_matter() -> None:
    moved = []
    for size in (1.0, 1000.0):
        weights = _weights(3.0, 4.0)
        _step(make_optimizer([ParamGroup([weights])], TrainingRecipe(lr=0.5, weight_decay=0.0)), weights, [0.0, size])
        moved.append(weights.detach().clone())
    torch.testing.assert_close(*moved)


def test_zero_weights_take_a_plain_step() -> None:
    weights = _weights(0.0, 0.0)
    _step(make_optimizer([ParamGroup([weights])], TrainingRecipe(lr=0.5)), weights, [1.0, 2.0])
    torch.testing.assert_close(weights.detach(), torch.tensor([[-0.5, -1.0]]))


def test_without_adaptation_it_is_sgd() -> None:
    ours, theirs = _weights(3.0, 4.0), _weights(3.0, 4.0)
    optimizer = make_optimizer([ParamGroup([ours])], TrainingRecipe(lr=0.5, weight_decay=0.1, larc=False))
    plain = torch.optim.SGD([theirs], lr=0.5, momentum=0.9, weight_decay=0.1)
    for gradient in ([0.0, 2.0], [1.0, -1.0]):
        _step(optimizer, ours, gradient)
        theirs.grad = torch.tensor([gradient])
        plain.step()
    torch.testing.assert_close(ours, theirs)


def test_vectors_take_plain_steps_with_their_own_learning_rate() -> None:
    matrix, vector = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2))
    optimizer = make_optimizer(
        [ParamGroup([matrix, vector])], TrainingRecipe(lr=1.0, weight_decay=0.1, vector_lr_factor=0.25)
    )
    matrix.grad, vector.grad = torch.ones(2, 2), torch.ones(2)
    optimizer.prepare(1.0, 0.5)
    optimizer.step()
    torch.testing.assert_close(vector.detach(), torch.full((2,), 0.75))
    assert float((1 - matrix.detach()).abs().max()) < 0.002


def test_groups_with_factor_zero_do_not_change_and_gather_no_momentum() -> None:
    weights = _weights(3.0, 4.0)
    optimizer = make_optimizer([ParamGroup([weights], lambda fraction: float(fraction >= 0.5))], TrainingRecipe(lr=0.5))
    _step(optimizer, weights, [1.0, 1.0], fraction=0.4)
    assert weights.detach().tolist() == [[3.0, 4.0]] and not optimizer.state[weights]
    _step(optimizer, weights, [1.0, 1.0], fraction=0.6)
    assert weights.detach().tolist() != [[3.0, 4.0]]
