"""DER (Yan et al. 2021) with channel-level masks: each step's network learns which of its channels it needs.

It departs from the paper in three ways. Only channels inside residual blocks are masked, as skip connections need the
others. Gradients of the masks are not rescaled for the steepness of their sigmoid. And a new network starts from the
weights that the learner was created with, not from the last network, which has been pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.channels import fit_shapes, inner_channels
from siesta.methods.batch.expanding import AuxiliaryOutput, expanding_loss, trained_parameters, tune_output
from siesta.methods.batch.heads import seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import ExpandingNetwork
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch

__all__ = ["DERPruned", "DERPrunedSettings", "sparsity"]


def sparsity(masks: Sequence[Tensor], weights: Sequence[int]) -> Tensor:
    """Return the share of the weights that the masks keep (equation 8); channels between blocks are all kept.

    Args:
        masks: Of each block, (C,).
        weights: Number of weights for each channel inside a block.
    """
    kept = torch.stack([weight * mask.sum() for mask, weight in zip(masks, weights, strict=True)]).sum()
    return kept / sum(weight * len(mask) for mask, weight in zip(masks, weights, strict=True))


class DERPrunedSettings(BatchSettings):
    """The authors' values for CIFAR-100; on ImageNet the temperature is 1.

    Attributes:
        auxiliary: Weight of the auxiliary loss.
        sparsity: Weight of the share of channels that is kept.
        steepest: Of the masks' sigmoid, at the end of each epoch.
        classifier_epochs: Epochs in which the output is trained anew, on balanced exemplars.
        classifier_lr: Maximum learning rate of that; it falls to a tenth halfway.
        temperature: By which logits are divided there.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    drops: Shares = (80 / 170, 120 / 170, 150 / 170)
    first_drops: Shares | None = (0.3, 0.6, 0.85)
    auxiliary: float = Field(default=1.0, ge=0)
    sparsity: float = Field(default=0.75, ge=0)
    steepest: float = Field(default=10.0, gt=1)
    classifier_epochs: int = Field(default=30, ge=1)
    classifier_lr: float = Field(default=0.1, gt=0)
    temperature: float = Field(default=5.0, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates in which the output is trained anew."""
        return self.classifier_epochs * min(2 * kept, samples) if step else 0


class DERPruned(BatchLearner[DERPrunedSettings]):
    """Adds a network for the new classes, with masks, and removes the channels that they close."""

    Settings: ClassVar[type[BatchSettings]] = DERPrunedSettings
    distils: ClassVar[bool] = False
    network: ExpandingNetwork

    def make_network(self) -> ExpandingNetwork:
        """Return a network whose branches are whole backbones, each starting from the same weights."""
        self._start = self.body()
        list(inner_channels(self._start))  # refuses networks that cannot be pruned
        return ExpandingNetwork(nn.Identity(), self.body(), self.features, self._start)

    def load_network(self, tensors: dict[str, Tensor]) -> None:
        """Load networks that may have been pruned."""
        fit_shapes(self.network, tensors)
        self.network.load_state_dict(tensors)

    def learn_step(self, step: Step, _previous: nn.Module | None) -> None:
        """Train the newest network with masks, remove the channels that they close, and train the output."""
        settings, network = self.settings, self.network
        grows = step.number > 0 and step.new > 0
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, step.classes)):
            output = AuxiliaryOutput(network.output, self.features, step.new + 1)
        steps = -(-len(step.ids) // settings.batch_size)
        channels = list(inner_channels(network.top.newest())) if step.new else []
        weights = [inner.weights_per_channel() for inner in channels]
        masks = [inner.mask(steps, settings.steepest) for inner in channels]

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            if grows:
                auxiliary = output.newest(features)
                total = expanding_loss(logits, auxiliary, batch.rows, step.known, settings.auxiliary)
            else:
                total = F.cross_entropy(logits, batch.rows)
            return total + settings.sparsity * sparsity([mask.current for mask in masks], weights) if masks else total

        trained = output if grows else network.output
        parameters = trained_parameters(network, trained)
        others = [self._start]
        self.train_stage(self.training(step, loss=loss, output=trained, parameters=parameters, others=others))
        for inner, mask in zip(channels, masks, strict=True):
            inner.unmask()
            inner.keep(mask.open_channels())
        if grows:
            tune_output(self, step, settings.classifier_epochs, settings.classifier_lr, settings.temperature)
