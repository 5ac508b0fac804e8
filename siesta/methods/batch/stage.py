"""One training of a batch learner's step: which images, which parameters, which loss, for how many epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from siesta.contracts import Ids
from siesta.methods.cost import count_flops
from siesta.sleep.batch import Batch
from siesta.sleep.loop import Trainee
from siesta.sleep.objective import Loss
from siesta.sleep.schedule import Schedule

__all__ = ["Stage", "live_norms", "passes", "step_flops", "train_only"]

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True)
class Stage:
    """One training.

    Attributes:
        ids: The images, (N,).
        epochs: Passes over them.
        top: Images -> features.
        output: Features -> logits.
        loss: What is minimised.
        lr: Maximum learning rate.
        weight_decay: Of the optimizer.
        schedule: Of the learning rate.
        parameters: What is trained; None trains all that top and output have.
        others: Networks that the loss needs besides, such as the previous one; those that are None are none.
        optimizer: "sgd" or "adamw".
    """

    ids: Ids
    epochs: int
    top: nn.Module
    output: nn.Module
    loss: Loss
    lr: float
    weight_decay: float
    schedule: Schedule
    parameters: Sequence[nn.Parameter] | None = None
    others: Sequence[nn.Module | None] = ()
    optimizer: Literal["sgd", "adamw"] = "sgd"

    def trainee(self, momentum: float, live: bool) -> Trainee:
        """Return what the training loop changes; other parameters get no gradients.

        Args:
            momentum: Of SGD; AdamW has its usual 0.9 and 0.999.
            live: Whether batch norms of trained layers follow the batches.
        """
        everything = [*self.top.parameters(), *self.output.parameters()]
        trained = train_only(everything, everything if self.parameters is None else self.parameters)
        groups = [{"params": trained, "max_lr": self.lr}]
        optimizer: torch.optim.Optimizer
        if self.optimizer == "adamw":
            optimizer = torch.optim.AdamW(groups, lr=0.0, weight_decay=self.weight_decay)
        else:
            optimizer = torch.optim.SGD(groups, lr=0.0, momentum=momentum, weight_decay=self.weight_decay)
        self.top.eval()
        return Trainee(self.top, self.output, optimizer, self.loss, live_norms(self.top) if live else [])


def train_only(everything: Iterable[nn.Parameter], chosen: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Let gradients flow to the chosen parameters alone, and return these, each once."""
    trained = {id(parameter): parameter for parameter in chosen}
    for parameter in everything:
        parameter.requires_grad_(id(parameter) in trained)
    return list(trained.values())


def live_norms(top: nn.Module) -> list[nn.Module]:
    """Return the batch norms whose parameters are all trained."""
    norms = [module for module in top.modules() if isinstance(module, _NORMS)]
    return [norm for norm in norms if all(parameter.requires_grad for parameter in norm.parameters())]


def passes(ids: Ids, rng: np.random.Generator) -> Iterator[Ids]:
    """Yield the ids in one random order after another, without end."""
    while True:
        yield rng.permutation(ids)


def step_flops(stage: Stage, image: Tensor) -> float:
    """Return the FLOPs of one image (1, 3, S, S) in a step: the networks, the loss and the gradients."""
    batch = Batch(image, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))

    def step() -> None:
        features = stage.top(batch.latents)
        loss = stage.loss(batch, features, stage.output(features))
        loss.backward()  # type: ignore[no-untyped-call]

    flops = count_flops(step, gradients=True)
    for parameter in (*stage.top.parameters(), *stage.output.parameters()):
        parameter.grad = None
    return flops
