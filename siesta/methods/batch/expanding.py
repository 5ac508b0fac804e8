"""Training of a network with a branch for each step: only the newest learns, with an auxiliary output of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.heads import LinearHead, seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import ExpandingNetwork
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch
from siesta.sleep.schedule import falling_at

__all__ = ["AuxiliaryOutput", "auxiliary_rows", "expanding_loss", "trained_parameters", "tune_output"]


def auxiliary_rows(rows: Tensor, known: int) -> Tensor:
    """Return targets of the auxiliary output: 0 for every old class, 1, 2, ... for the new ones (DER, section 3.2)."""
    return (rows - known + 1).clamp(min=0)


def expanding_loss(logits: Tensor, auxiliary: Tensor, rows: Tensor, known: int, weight: float) -> Tensor:
    """Return the cross-entropy of all classes plus `weight` times that of the auxiliary output.

    Args:
        logits: (B, K).
        auxiliary: Logits of "old" and of each new class, (B, 1 + K - known).
        rows: (B,).
        known: Number of old classes.
        weight: Of the auxiliary loss.
    """
    return F.cross_entropy(logits, rows) + weight * F.cross_entropy(auxiliary, auxiliary_rows(rows, known))


class AuxiliaryOutput(nn.Module):
    """The network's output, and beside it one on the newest branch's features that only training needs."""

    def __init__(self, main: LinearHead, features: int, classes: int) -> None:
        super().__init__()
        self.main = main
        self.auxiliary = LinearHead(features, classes)
        self._features = features

    def forward(self, features: Tensor) -> Tensor:
        """(B, T D) -> (B, K)."""
        logits: Tensor = self.main(features)
        return logits

    def newest(self, features: Tensor) -> Tensor:
        """Return the auxiliary logits of the last D features: (B, T D) -> (B, K')."""
        logits: Tensor = self.auxiliary(features[:, -self._features :])
        return logits


def trained_parameters(network: ExpandingNetwork, output: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of the trunk, the newest branch and the output."""
    parts: Iterable[nn.Module] = (network.top.trunk, network.top.newest(), output)
    return [parameter for part in parts for parameter in part.parameters()]


def tune_output(learner: BatchLearner[Any], step: Step, epochs: int, lr: float, temperature: float) -> None:
    """Train the output anew, from random rows, on as many images of each class (DER, section 3.4).

    Args:
        learner: Its network is an `ExpandingNetwork`.
        step: The step.
        epochs: Of this training.
        lr: Maximum learning rate; it falls to a tenth halfway.
        temperature: By which logits are divided.
    """
    output = learner.network.output
    assert isinstance(output, LinearHead)
    _reset(output, derived_seed(learner.seed, Purpose.METHOD_GROWTH, step.classes, 1))

    def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
        return F.cross_entropy(logits / temperature, batch.rows)

    stage = learner.training(
        step,
        ids=learner.balanced(step),
        epochs=epochs,
        loss=loss,
        lr=lr,
        schedule=falling_at(0.5),
        parameters=list(output.parameters()),
    )
    learner.train_stage(stage)


@torch.no_grad()
def _reset(head: LinearHead, seed: int) -> None:
    """Give an output random rows again."""
    with seeded(seed):
        fresh = LinearHead(head.weight.shape[1], len(head))
    head.weight.copy_(fresh.weight)
    head.bias.zero_()
