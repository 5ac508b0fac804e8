"""FOSTER (Wang et al. 2022): boosting with a second network, then compression of both into one by distillation.

The published augmentation is crops and flips; the authors' code adds cutout and AutoAugment, which are left out here.
The network that predicts is the compressed one, of one backbone (the authors also report the two before compression).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.distillation import soft_cross_entropy
from siesta.methods.batch.expanding import AuxiliaryOutput
from siesta.methods.batch.heads import LinearHead, seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import Branches, GrowingNetwork, frozen_copy
from siesta.methods.batch.settings import BatchSettings
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch

__all__ = ["Foster", "FosterSettings", "balanced_distillation", "boosting_loss", "class_weights"]


def class_weights(counts: Sequence[int], beta: float) -> Tensor:
    """Return 1 / effective number of images of each class (Cui et al. 2019), of mean one, (K,)."""
    weights = (1 - beta) / (1 - beta ** torch.tensor(counts, dtype=torch.float64))
    return (weights * len(counts) / weights.sum()).float()


def boosting_loss(
    logits: Tensor, newest: Tensor, old_logits: Tensor, rows: Tensor, weights: Tensor, temperature: float
) -> Tensor:
    """Return the loss of the boosting (equation 9).

    Args:
        logits: Of both networks, (B, K). They are divided by the weights, so that rare classes need larger ones.
        newest: Logits from the features of the new network alone, (B, K).
        old_logits: Of the old network, (B, K').
        rows: (B,).
        weights: Of each class, (K,).
        temperature: Of the distillation.
    """
    kept = soft_cross_entropy(logits[:, : old_logits.shape[1]], old_logits, temperature)
    return F.cross_entropy(logits / weights, rows) + F.cross_entropy(newest, rows) + kept


def balanced_distillation(logits: Tensor, teacher: Tensor, weights: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of logits (B, K) with the teacher's shares, weighted by class and normalised again."""
    wanted = (teacher / temperature).softmax(dim=1) * weights
    wanted = wanted / wanted.sum(dim=1, keepdim=True)
    return -(wanted * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()


class FosterSettings(BatchSettings):
    """The authors' values for CIFAR-100.

    Attributes:
        compression_epochs: Epochs of the distillation into one network.
        boosting_beta: Beta of the class weights in the boosting; close to 1 weighs rare classes more.
        compression_beta: The same in the compression.
        temperature: Of both distillations.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    schedule: Literal["steps", "cosine"] = "cosine"
    weight_decay: float = Field(default=5e-4, ge=0, le=1)
    compression_epochs: int = Field(default=130, ge=1)
    boosting_beta: float = Field(default=0.96, ge=0, lt=1)
    compression_beta: float = Field(default=0.97, ge=0, lt=1)
    temperature: float = Field(default=2.0, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates of the compression."""
        del kept
        return self.compression_epochs * samples if step else 0


class Foster(BatchLearner[FosterSettings]):
    """Trains a second network beside the old one, then one network to answer as both."""

    Settings: ClassVar[type[BatchSettings]] = FosterSettings

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Boost, then compress; a step without new classes goes on training the one network."""
        if previous is None or not step.new:
            self.train_stage(self.training(step, loss=_cross_entropy))
            return
        counts = torch.bincount(torch.from_numpy(self.rows_of(step.ids)), minlength=step.classes).clamp(min=1).tolist()
        self._compress(step, self._boost(step, previous, counts), counts)

    def _boost(self, step: Step, previous: nn.Module, counts: Sequence[int]) -> GrowingNetwork:
        """Return two networks with one output, the first of them fixed."""
        settings = self.settings
        assert isinstance(previous, GrowingNetwork)
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, step.classes)):
            main = copy.deepcopy(previous.output)
            assert isinstance(main, LinearHead)
            main.grow(step.new, self.features)
            output = AuxiliaryOutput(main, self.features, step.classes)
        newest = copy.deepcopy(previous.top)
        top = Branches(nn.Identity(), [copy.deepcopy(previous.top), newest])
        weights = class_weights(counts, settings.boosting_beta)

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            with torch.no_grad():
                old_logits = previous.output(features.detach()[:, : self.features])
            return boosting_loss(logits, output.newest(features), old_logits, batch.rows, weights, settings.temperature)

        parameters = [*newest.parameters(), *output.parameters()]
        self.train_stage(
            self.training(step, top=top, output=output, loss=loss, parameters=parameters, others=[previous])
        )
        return GrowingNetwork(top, main)

    def _compress(self, step: Step, both: GrowingNetwork, counts: Sequence[int]) -> None:
        """Train the one network, which starts from the old one, to answer as both do."""
        settings = self.settings
        teacher = frozen_copy(both)
        weights = class_weights(counts, settings.compression_beta)

        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            with torch.no_grad():
                wanted = teacher(batch.latents)
            return balanced_distillation(logits, wanted, weights, settings.temperature)

        epochs = settings.compression_epochs
        self.train_stage(self.training(step, loss=loss, epochs=epochs, weight_decay=0.0, others=[teacher]))


def _cross_entropy(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
    return F.cross_entropy(logits, batch.rows)
