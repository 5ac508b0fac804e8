"""PODNet (Douillard et al. 2020): distillation of feature maps pooled over width and height, several proxies a class.

As in the authors' code, features are not rectified before they are pooled (unless there is a base initialisation, whose
features are), proxies of old classes stay fixed, and the output is trained on balanced exemplars at the end of a step.
New proxies are random instead of centres of a k-means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones import find_spec
from siesta.methods.batch.heads import ProxyHead
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import GrowingNetwork, stage_ends
from siesta.methods.batch.settings import BatchSettings
from siesta.methods.batch.step import Step
from siesta.sleep.batch import Batch
from siesta.sleep.objective import Loss
from siesta.sleep.schedule import half_cosine

__all__ = ["PODNet", "PODNetSettings", "StagedBody", "nca_loss", "pod_flat", "pod_spatial"]

_MARGIN = 0.6


def pod_spatial(maps: Sequence[Tensor], old_maps: Sequence[Tensor]) -> Tensor:
    """Return the mean distance of feature maps (B, C, H, W) of each stage from old ones (equation 4).

    The squares of each map are summed over its width and over its height; both sums together have length one.
    """
    distances = []
    for new, old in zip(maps, old_maps, strict=True):
        pooled = [
            F.normalize(torch.cat([squares.sum(dim=3).flatten(1), squares.sum(dim=2).flatten(1)], dim=1))
            for squares in (new**2, old**2)
        ]
        distances.append((pooled[0] - pooled[1]).norm(dim=1).mean())
    return torch.stack(distances).mean()


def pod_flat(features: Tensor, old_features: Tensor) -> Tensor:
    """Return the mean of one minus the cosine of features (B, D) and old ones."""
    return (1 - F.cosine_similarity(features, old_features)).mean()


def nca_loss(similarities: Tensor, rows: Tensor, scale: Tensor | float, margin: float = _MARGIN) -> Tensor:
    """Return the mean of [-log(exp(s (y - margin)) / sum of exp(s y') over other classes)]+ (equation 8).

    Args:
        similarities: s y of each class, (B, K).
        rows: (B,).
        scale: s.
        margin: Of the own class's similarity.
    """
    own = similarities.gather(1, rows[:, None])
    others = similarities.scatter(1, rows[:, None], -math.inf)
    losses = others.logsumexp(dim=1) - (own[:, 0] - scale * margin)
    return losses.clamp(min=0).mean()


class StagedBody(nn.Module):
    """A backbone that keeps the feature maps at the end of its stages in `maps` until the next forward pass."""

    def __init__(self, body: nn.Sequential, ends: Sequence[int]) -> None:
        super().__init__()
        self.body = body
        self._ends = frozenset(ends)
        self.maps: list[Tensor] = []

    def __getstate__(self) -> dict[str, Any]:
        """Copies have no maps: those of a training step belong to its graph."""
        return self.__dict__ | {"maps": []}

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, D)."""
        self.maps = []
        x = images
        for index, layer in enumerate(self.body):
            x = layer(x)
            if index in self._ends:
                self.maps.append(x)
        return x


class _Network(GrowingNetwork):
    top: StagedBody
    output: ProxyHead


class PODNetSettings(BatchSettings):
    """The authors' values for CIFAR-100.

    Attributes:
        spatial: Weight of the distillation of feature maps (ImageNet: 8).
        flat: Weight of the distillation of features (ImageNet: 10).
        proxies: Of each class.
        tuning_epochs: Epochs in which the output is trained on balanced exemplars.
        tuning_lr: Maximum learning rate of that.
    """

    epochs: int = Field(default=160, ge=1)
    schedule: Literal["steps", "cosine"] = "cosine"
    weight_decay: float = Field(default=5e-4, ge=0, le=1)
    spatial: float = Field(default=3.0, ge=0)
    flat: float = Field(default=1.0, ge=0)
    proxies: int = Field(default=10, ge=1)
    tuning_epochs: int = Field(default=20, ge=1)
    tuning_lr: float = Field(default=0.05, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates on balanced exemplars."""
        return self.tuning_epochs * min(2 * kept, samples) if step else 0


class PODNet(BatchLearner[PODNetSettings]):
    """Trains with distillation of feature maps and features, then its output on balanced exemplars."""

    Settings: ClassVar[type[BatchSettings]] = PODNetSettings
    network: _Network

    def make_network(self) -> _Network:
        """Return the backbone, without its last activation, under proxies."""
        pipeline = self.workspace.pipeline
        body = self.body()
        activation = find_spec(pipeline.backbone.name).last_activation
        if activation is not None and not len(self.base_head()):  # class vectors of a base need it
            layer, attribute = activation
            setattr(body[layer - 1], attribute, nn.Identity())  # the body ends with a centre
        top = StagedBody(body, stage_ends(body, pipeline.image_size))
        return _Network(top, ProxyHead(self.features, self.settings.proxies, scale=1.0))

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train the network, then the output."""
        network, settings = self.network, self.settings
        trained = [network.output.scale, network.output.new]
        loss = self._loss(step, previous)
        everything = [*network.top.parameters(), *trained]
        self.train_stage(self.training(step, loss=loss, parameters=everything, others=[previous]))
        if step.known and step.new:
            tuning = {
                "ids": self.balanced(step),
                "epochs": settings.tuning_epochs,
                "lr": settings.tuning_lr,
                "schedule": half_cosine,
                "loss": self._loss(step, None),
                "parameters": trained,
            }
            self.train_stage(self.training(step, **tuning))

    def _loss(self, step: Step, previous: nn.Module | None) -> Loss:
        network, settings = self.network, self.settings
        factor = math.sqrt(step.classes / max(step.new, 1))

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            total = nca_loss(logits, batch.rows, network.output.scale)
            if previous is None:
                return total
            assert isinstance(previous, _Network)
            with torch.no_grad():
                old_features = previous.top(batch.latents)
            spatial = pod_spatial(network.top.maps, previous.top.maps)
            return total + factor * (settings.spatial * spatial + settings.flat * pod_flat(features, old_features))

        return loss
