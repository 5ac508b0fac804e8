"""MIRA (Lee et al. 2022, "Unsupervised Visual Representation Learning via Mutual Information Regularized Assignment").

As in SwAV, images are assigned to prototypes. The assignments stay close to the predictions of a momentum encoder
while they maximise the mutual information of images and prototypes; neither equal partition nor a queue is needed.
Values are those of its authors, multi-crop included.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain import distributed
from siesta.pretrain.barlow_twins import BLURRED, SOLARISED
from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views, cosine_schedule
from siesta.pretrain.crops import ColourDistortion, CropSpec, multi_crop
from siesta.pretrain.encoder import Encoder, projection_mlp
from siesta.pretrain.prototypes import FROZEN_STEPS, Prototypes
from siesta.pretrain.swav import LARGE_CROPS, swapped_loss

__all__ = ["MIRA", "mira_targets"]

_LARGE = tuple(CropSpec((0.14, 1.0), colours=colours) for colours in (BLURRED, SOLARISED))
_SMALL = CropSpec((0.05, 0.14), size=96 / 224, colours=ColourDistortion(BLURRED.jitter))
_MIN_USAGE = 1e-12


@torch.no_grad()
def mira_targets(scores: Tensor, temperature: float, beta: float, rounds: int) -> Tensor:
    """Assignments W that minimise the mean of KL(w, p) minus beta times the mutual information of W (equation 7).

    With p = softmax(scores / temperature) and u the mean of all w, the optimum is
    w ~ p^(1 / (1 - beta)) * u^(-beta / (1 - beta)); u is found by fixed-point iteration.

    Args:
        scores: Cosines, (N, K).
        temperature: Temperature of p.
        beta: Weight of the mutual information, in 0..1.
        rounds: Number of iterations.

    Returns:
        Assignments (N, K) whose rows sum to one.
    """
    sharpened = F.softmax(scores / (temperature * (1 - beta)), dim=1)  # p^(1 / (1 - beta)), up to a factor per row
    usage = sharpened.mean(dim=0).pow(1 - beta)
    for _ in range(rounds):
        usage = (sharpened / _weighted(sharpened, usage, beta).sum(dim=1, keepdim=True)).mean(dim=0).pow(1 - beta)
    weighted = _weighted(sharpened, usage, beta)
    return weighted / weighted.sum(dim=1, keepdim=True)


def _weighted(sharpened: Tensor, usage: Tensor, beta: float) -> Tensor:
    return sharpened * usage.clamp_min(_MIN_USAGE).pow(-beta / (1 - beta))


def _embeddings(head: nn.Module, z: Tensor, crops: int) -> list[Tensor]:
    """Return embeddings (B, D) of each crop from the features of all; batch norms see one crop at a time.

    This is as in the authors' code: the momentum encoder, which sees large crops only, is normalised like the encoder.
    """
    return [F.normalize(head(rows)) for rows in z.chunk(crops)]


class MIRA(nn.Module):
    """The encoder with a projection head and prototypes, and a momentum copy of encoder and head.

    Args:
        encoder: The network to train.
        prototypes: Number of prototypes, K.
        temperature: Temperature of the predictions.
        target_temperature: Temperature of the momentum copy's predictions.
        beta: Weight of the mutual information at the end of the run.
        first_beta: Weight of the mutual information at its start.
        rounds: Iterations for the assignments.
        slowness: Momentum of the copy at the start of the run; it rises to 1 at the end.
        thaw: Fraction of the run after which the prototypes are trained.
        still: Number of steps after which they are trained, if that is later.
        hidden: Width of the hidden layers of the projection head.
        embedding: Length of an embedding, D.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = multi_crop(*_LARGE, small=_SMALL, count=6)
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(lr=0.3, batch_size=256, warmup=10 / 400, vector_lr_factor=1.0)
    needs_labels: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        prototypes: int = 3000,
        temperature: float = 0.1,
        target_temperature: float = 0.225,
        beta: float = 2 / 3,
        first_beta: float = 0.75,
        rounds: int = 30,
        slowness: float = 0.99,
        thaw: float = 1 / 400,
        still: int = FROZEN_STEPS,
        hidden: int = 2048,
        embedding: int = 256,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projection_mlp(encoder.features, hidden, hidden, embedding)
        self.prototypes = Prototypes(prototypes, embedding, thaw, still)
        self.slow_encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.slow_projector = copy.deepcopy(self.projector).requires_grad_(False)
        self._temperature = temperature
        self._target_temperature = target_temperature
        self._rounds = rounds
        self._betas = (first_beta, beta)
        self._momentum = slowness

    def param_groups(self) -> list[ParamGroup]:
        """Return encoder and head, and the prototypes; the momentum copy is not trained."""
        rest = [*self.encoder.parameters(), *self.projector.parameters()]
        return [ParamGroup(rest), self.prototypes.param_group()]

    def forward(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of crops, the large ones first."""
        return self.forward_features(self.encoder.encode_crops(views.crops), views, fraction)

    def forward_features(self, z: Tensor, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of crops whose features z (crops * B, features) are known."""
        self.prototypes.begin_step()
        embeddings = _embeddings(self.projector, z, len(views.crops))
        scores = [self.prototypes(rows) for rows in embeddings]
        targets = self._targets(views.crops[:LARGE_CROPS], fraction)
        loss = swapped_loss(scores, targets, self._temperature)
        assignments = F.softmax(scores[0].detach() / self._temperature, dim=1)
        return PretrainOutput(loss, embeddings[0].detach(), assignments)

    @torch.no_grad()
    def _targets(self, large: Sequence[Tensor], fraction: float) -> list[Tensor]:
        """Return assignments (B, K) of each large crop by the momentum copy, computed over all ranks."""
        self._update_slow_copy(cosine_schedule(self._momentum, 1.0, fraction))
        embeddings = _embeddings(self.slow_projector, self.slow_encoder.encode_crops(large), len(large))
        beta = cosine_schedule(*self._betas, fraction)
        scores = [distributed.all_gather(self.prototypes(rows)) for rows in embeddings]
        targets = [mira_targets(rows, self._target_temperature, beta, self._rounds) for rows in scores]
        return [distributed.local_chunk(rows) for rows in targets]

    def _update_slow_copy(self, momentum: float) -> None:
        for trained, slow in ((self.encoder, self.slow_encoder), (self.projector, self.slow_projector)):
            for new, old in zip(trained.parameters(), slow.parameters(), strict=True):
                old.lerp_(new, 1 - momentum)
