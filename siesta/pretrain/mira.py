"""MIRA (Lee et al. 2022, "Unsupervised Visual Representation Learning via Mutual Information Regularized Assignment").

Like SwAV, but pictures are divided among prototypes so that the division tells as much as possible about the picture
while staying near what a slow copy of the network says: no equal shares are asked for, no queue is needed. Values are
those of its authors, multi-crop included.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain import ranks
from siesta.pretrain.barlow_twins import BLURRED, SOLARISED
from siesta.pretrain.contract import Outcome, Part, Training, Views, eased
from siesta.pretrain.crops import Colours, Crop, multi_crop
from siesta.pretrain.encoder import Encoder, projector
from siesta.pretrain.prototypes import STILL, Prototypes
from siesta.pretrain.swav import LARGE_CROPS, swapped_loss

__all__ = ["MIRA", "mira_targets"]

_LARGE = tuple(Crop((0.14, 1.0), colours=colours) for colours in (BLURRED, SOLARISED))
_SMALL = Crop((0.05, 0.14), size=96 / 224, colours=Colours(BLURRED.jitter))


@torch.no_grad()
def mira_targets(scores: Tensor, temperature: float, beta: float, rounds: int) -> Tensor:
    """Assignments W that minimise the mean of KL(w, p) less beta times the mutual information of W, see its eq. 7.

    With p = softmax(scores / temperature) and u the mean of all w, the optimum is
    w ~ p^(1 / (1 - beta)) * u^(-beta / (1 - beta)); u is found by fixed-point iteration.

    Args:
        scores: Cosines, (N, K).
        temperature: Of p.
        beta: Weight of the information, in 0..1.
        rounds: Of the iteration.

    Returns:
        (N, K), every row sums to one.
    """
    sharp = F.softmax(scores / (temperature * (1 - beta)), dim=1)  # p^(1 / (1 - beta)), but for a factor a row
    used = sharp.mean(dim=0).pow(1 - beta)
    for _ in range(rounds):
        used = (sharp / _weighted(sharp, used, beta).sum(dim=1, keepdim=True)).mean(dim=0).pow(1 - beta)
    weighted = _weighted(sharp, used, beta)
    return weighted / weighted.sum(dim=1, keepdim=True)


def _weighted(sharp: Tensor, used: Tensor, beta: float) -> Tensor:
    return sharp * used.clamp_min(1e-12).pow(-beta / (1 - beta))


def _embedded(head: nn.Module, z: Tensor, crops: int) -> list[Tensor]:
    """Embeddings (B, D) of each crop, from all their features; norms see one crop at a time, as its authors have it.

    So the copy, which sees large crops only, is normed as the network itself.
    """
    return [F.normalize(head(rows)) for rows in z.chunk(crops)]


class MIRA(nn.Module):
    """The encoder with a projection head and prototypes, and a slow copy of all but the prototypes."""

    plan: ClassVar[tuple[Crop, ...]] = multi_crop(*_LARGE, small=_SMALL, count=6)
    recipe: ClassVar[Training] = Training(rate=0.3, batch=256, warm_up=10 / 400, vectors=1.0)
    labelled: ClassVar[bool] = False

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
        still: int = STILL,
        hidden: int = 2048,
        embedding: int = 256,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector(encoder.features, hidden, hidden, embedding)
        self.prototypes = Prototypes(prototypes, embedding, thaw, still)
        self.slow_encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.slow_projector = copy.deepcopy(self.projector).requires_grad_(False)
        self._temperature, self._target_temperature, self._rounds = temperature, target_temperature, rounds
        self._betas, self._slowness = (first_beta, beta), slowness

    def parts(self) -> list[Part]:
        """Prototypes stand still until they thaw; the slow copy follows by itself."""
        rest = [*self.encoder.parameters(), *self.projector.parameters()]
        return [Part(rest), self.prototypes.part()]

    def forward(self, views: Views, fraction: float) -> Outcome:
        """Crops, the large ones first, see `plan` -> loss."""
        return self.of_features(self.encoder.many(views.crops), views, fraction)

    def of_features(self, z: Tensor, views: Views, fraction: float) -> Outcome:
        """The same for crops whose z (crops * B, features) is known."""
        self.prototypes.begin_step()
        embeddings = _embedded(self.projector, z, len(views.crops))
        scores = [self.prototypes(rows) for rows in embeddings]
        targets = self._targets(views.crops[:LARGE_CROPS], fraction)
        loss = swapped_loss(scores, targets, self._temperature)
        shares = F.softmax(scores[0].detach() / self._temperature, dim=1)
        return Outcome(loss, embeddings[0].detach(), shares)

    @torch.no_grad()
    def _targets(self, large: Sequence[Tensor], fraction: float) -> list[Tensor]:
        """Assignments (B, K) of each large crop by the slow copy, all ranks counted in."""
        self._follow(eased(self._slowness, 1.0, fraction))
        embeddings = _embedded(self.slow_projector, self.slow_encoder.many(large), len(large))
        beta = eased(*self._betas, fraction)
        every = [ranks.gathered(self.prototypes(rows)) for rows in embeddings]
        return [ranks.own(mira_targets(scores, self._target_temperature, beta, self._rounds)) for scores in every]

    def _follow(self, slowness: float) -> None:
        for quick, slow in ((self.encoder, self.slow_encoder), (self.projector, self.slow_projector)):
            for new, old in zip(quick.parameters(), slow.parameters(), strict=True):
                old.lerp_(new, 1 - slowness)
