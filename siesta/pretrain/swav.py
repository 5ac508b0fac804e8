"""SwAV: swapping assignments between views.

Caron et al. 2020, "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments".

Two large crops of an image are assigned to prototypes so that all prototypes are used equally (Sinkhorn-Knopp); every
other crop has to predict that assignment. Values are those of the SIESTA paper: 2 x 224 + 6 x 128 px, 1000 prototypes,
epsilon 0.03, a queue of 384, learning rate 0.6 falling to 0.0006 at a batch size of 64; the rest is the small-batch
recipe of SwAV's authors. They freeze the prototypes for one epoch of 200 and start the queue after 15. Here these are
fractions of the run, but not fewer steps than theirs: with a queue from the first steps on the loss soon rose, perhaps
because the embeddings of a batch have all moved in one direction compared with old ones. So a short run has no queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain import distributed
from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec, multi_crop
from siesta.pretrain.encoder import Encoder, projection_mlp
from siesta.pretrain.prototypes import FROZEN_STEPS, Prototypes
from siesta.pretrain.queue import EmbeddingQueue

__all__ = ["LARGE", "LARGE_CROPS", "SMALL", "SwAV", "sinkhorn", "swapped_loss"]

LARGE_CROPS = 2
LARGE, SMALL = CropSpec((0.3, 1.0)), CropSpec((0.05, 0.3), size=128 / 224)


@torch.no_grad()
def sinkhorn(scores: Tensor, epsilon: float, rounds: int) -> Tensor:
    """Soft assignments of images to prototypes, with the same total weight for every prototype.

    Args:
        scores: Cosines, (N, K).
        epsilon: Entropy regularisation; towards 0 assignments become hard.
        rounds: Number of normalisations of columns and rows.

    Returns:
        Assignments (N, K): every row sums to one, every column to about N / K.
    """
    plan = scores / epsilon  # in logarithms, so that no epsilon overflows
    for _ in range(rounds):
        plan = plan - plan.logsumexp(dim=0, keepdim=True)
        plan = plan - plan.logsumexp(dim=1, keepdim=True)
    return plan.exp()


def swapped_loss(scores: Sequence[Tensor], targets: Sequence[Tensor], temperature: float) -> Tensor:
    """Mean cross-entropy between each target and the predictions from every other crop.

    Args:
        scores: Cosines (B, K) of each crop.
        targets: Assignments (B, K) of the first few crops.
        temperature: Temperature of the predictions.
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
    """The encoder with a projection head and prototypes.

    Args:
        encoder: The network to train.
        prototypes: Number of prototypes, K.
        epsilon: Entropy regularisation of the assignments.
        rounds: Iterations of Sinkhorn-Knopp.
        temperature: Temperature of the predictions.
        queue: Rows in the queue of each large crop; 0 for no queue.
        queue_starts: Fraction of the run after which the queue is filled.
        queue_waits: Number of steps after which it is filled, if that is later.
        thaw: Fraction of the run after which the prototypes are trained.
        still: Number of steps after which they are trained, if that is later.
        hidden: Width of the hidden layer of the projection head.
        embedding: Length of an embedding, D.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = multi_crop(LARGE, LARGE, small=SMALL, count=6)
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(lr=0.6, final_lr_factor=0.001)
    needs_labels: ClassVar[bool] = False

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
        queue_waits: int = 15 * FROZEN_STEPS,
        thaw: float = 1 / 200,
        still: int = FROZEN_STEPS,
        hidden: int = 2048,
        embedding: int = 128,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projection_mlp(encoder.features, hidden, embedding)
        self.prototypes = Prototypes(prototypes, embedding, thaw, still)
        self.queues = nn.ModuleList(EmbeddingQueue(queue, embedding) for _ in range(LARGE_CROPS))
        self._epsilon = epsilon
        self._rounds = rounds
        self._temperature = temperature
        self._queue_start_fraction = queue_starts
        self._queue_start_step = queue_waits

    def param_groups(self) -> list[ParamGroup]:
        """Return encoder and head, and the prototypes."""
        rest = [*self.encoder.parameters(), *self.projector.parameters()]
        return [ParamGroup(rest), self.prototypes.param_group()]

    def forward(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of crops, the large ones first."""
        self.prototypes.begin_step()
        embeddings = F.normalize(self.projector(self.encoder.encode_crops(views.crops)))  # (crops * B, D)
        scores = self.prototypes(embeddings).chunk(len(views.crops))
        large = embeddings.detach().chunk(len(views.crops))[:LARGE_CROPS]
        targets = [self._targets(crop, rows, fraction) for crop, rows in enumerate(large)]
        loss = swapped_loss(scores, targets, self._temperature)
        return PretrainOutput(loss, large[0], F.softmax(scores[0].detach() / self._temperature, dim=1))

    @torch.no_grad()
    def _targets(self, crop: int, embeddings: Tensor, fraction: float) -> Tensor:
        """Return assignments (B, K) of a large crop's embeddings (B, D), computed with its queue and over all ranks."""
        queue = self.queues[crop]
        assert isinstance(queue, EmbeddingQueue)
        batch = distributed.all_gather(embeddings)
        queued = queue.rows() if queue.full else batch[:0]
        late_enough = fraction >= self._queue_start_fraction and int(self.prototypes.begun) > self._queue_start_step
        if len(queue.kept) and late_enough:
            queue.put(batch)
        targets = sinkhorn(self.prototypes(torch.cat([queued, batch])), self._epsilon, self._rounds)
        return distributed.local_chunk(targets[len(queued) :])
