"""SwAV: swapping assignments between views.

Caron et al. 2020, "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments".

Two large crops of a picture are divided among prototypes so that all of these are used alike (Sinkhorn-Knopp); every
other crop has to predict that division. As the SIESTA paper trains it: 2 x 224 + 6 x 128 px, 1000 prototypes, epsilon
0.03, a queue of 384, rate 0.6 falling to 0.0006 at a batch of 64; the rest is the original's small-batch recipe. There
prototypes stand still for one epoch of 200 and the queue begins after 15: fractions of the run here, but no fewer steps
than there: with a queue from the first steps on the loss soon rose, perhaps because against old embeddings all of a
batch seems to have moved one way. So a short run has no queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain import ranks
from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Crop, multi_crop
from siesta.pretrain.encoder import Encoder, projector
from siesta.pretrain.prototypes import STILL, Prototypes
from siesta.pretrain.queue import Queue

__all__ = ["LARGE", "LARGE_CROPS", "SMALL", "SwAV", "sinkhorn", "swapped_loss"]

LARGE_CROPS = 2
LARGE, SMALL = Crop((0.3, 1.0)), Crop((0.05, 0.3), size=128 / 224)


@torch.no_grad()
def sinkhorn(scores: Tensor, epsilon: float, rounds: int) -> Tensor:
    """Soft assignments of pictures to prototypes, all of which get the same weight in all.

    Args:
        scores: Cosines, (N, K).
        epsilon: Smoothness; towards 0 assignments become hard.
        rounds: How often rows and columns are brought to their sums.

    Returns:
        (N, K): every row sums to one, every column to about N / K.
    """
    plan = scores / epsilon  # in logarithms, which no epsilon is too small for
    for _ in range(rounds):
        plan = plan - plan.logsumexp(dim=0, keepdim=True)
        plan = plan - plan.logsumexp(dim=1, keepdim=True)
    return plan.exp()


def swapped_loss(scores: Sequence[Tensor], targets: Sequence[Tensor], temperature: float) -> Tensor:
    """Mean cross-entropy of each target with what every other crop predicts.

    Args:
        scores: Cosines (B, K) of each crop.
        targets: Assignments (B, K) of the first few of them.
        temperature: Of the predictions.
    """
    predictions = [F.log_softmax(score / temperature, dim=1) for score in scores]
    losses = [
        -(target * predicted).sum(dim=1).mean()
        for crop, target in enumerate(targets)
        for other, predicted in enumerate(predictions)
        if other != crop
    ]
    return torch.stack(losses).mean()


class SwAV(nn.Module):
    """The encoder with a projection head and prototypes."""

    plan: ClassVar[tuple[Crop, ...]] = multi_crop(LARGE, LARGE, small=SMALL, count=6)
    recipe: ClassVar[Training] = Training(rate=0.6, final=0.001)
    labelled: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        prototypes: int = 1000,
        epsilon: float = 0.03,
        rounds: int = 3,
        temperature: float = 0.1,
        queue: int = 384,
        queue_starts: float = 15 / 200,
        queue_waits: int = 15 * STILL,
        thaw: float = 1 / 200,
        still: int = STILL,
        hidden: int = 2048,
        embedding: int = 128,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector(encoder.features, hidden, embedding)
        self.prototypes = Prototypes(prototypes, embedding, thaw, still)
        self.queues = nn.ModuleList(Queue(queue, embedding) for _ in range(LARGE_CROPS))
        self._epsilon, self._rounds, self._temperature = epsilon, rounds, temperature
        self._queue_starts, self._queue_waits = queue_starts, queue_waits

    def parts(self) -> list[Part]:
        """Prototypes stand still until they thaw."""
        rest = [*self.encoder.parameters(), *self.projector.parameters()]
        return [Part(rest), self.prototypes.part()]

    def forward(self, views: Views, fraction: float) -> Outcome:
        """Crops, the large ones first, see `plan` -> loss."""
        self.prototypes.begin_step()
        embeddings = F.normalize(self.projector(self.encoder.many(views.crops)))  # (crops * B, D)
        scores = self.prototypes(embeddings).chunk(len(views.crops))
        large = embeddings.detach().chunk(len(views.crops))[:LARGE_CROPS]
        targets = [self._assigned(crop, rows, fraction) for crop, rows in enumerate(large)]
        loss = swapped_loss(scores, targets, self._temperature)
        return Outcome(loss, large[0], F.softmax(scores[0].detach() / self._temperature, dim=1))

    @torch.no_grad()
    def _assigned(self, crop: int, embeddings: Tensor, fraction: float) -> Tensor:
        """Assignments (B, K) of a large crop's embeddings (B, D), those of its queue and of all ranks counted in."""
        queue, every = self.queues[crop], ranks.gathered(embeddings)
        assert isinstance(queue, Queue)
        before = queue.rows() if queue.full else every[:0]
        if len(queue.kept) and fraction >= self._queue_starts and int(self.prototypes.begun) > self._queue_waits:
            queue.put(every)
        targets = sinkhorn(self.prototypes(torch.cat([before, every])), self._epsilon, self._rounds)
        return ranks.own(targets[len(before) :])
