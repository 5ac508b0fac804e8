"""SEED (Fang et al. 2021, "SEED: Self-supervised Distillation for Visual Representation").

The network learns to reproduce the similarities that a teacher sees between an image and those in a queue. The default
teacher is EfficientNet-Lite0 with its ImageNet-1K weights, which was trained with labels; SEED's own teachers were not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones import DEFAULT_BACKBONE, PUBLISHED, make_backbone
from siesta.errors import BadInput
from siesta.pretrain import distributed
from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import ColourDistortion, CropSpec
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.queue import EmbeddingQueue

__all__ = ["SEED", "check_teacher", "seed_loss"]

_COLOURS = ColourDistortion((0.4, 0.4, 0.4, 0.1))  # those of MoCo v2, which SEED uses


def seed_loss(
    student: Tensor, teacher: Tensor, queue: Tensor, temperature: float, teacher_temperature: float
) -> Tensor:
    """Cross-entropy between the similarities of teacher and student to the teacher's embeddings.

    Both compare an image with the queue and with the teacher's embedding of the image itself.

    Args:
        student: Unit-length embeddings, (B, D).
        teacher: Unit-length embeddings of the same images by the teacher, (B, D).
        queue: Embeddings of earlier images by the teacher, (n, D).
        temperature: Temperature of the student's similarities.
        teacher_temperature: Temperature of the teacher's similarities.
    """
    teacher_scores, student_scores = (
        torch.cat([(rows * teacher).sum(dim=1, keepdim=True), rows @ queue.T], dim=1) for rows in (teacher, student)
    )  # (B, 1 + n)
    targets = F.softmax(teacher_scores / teacher_temperature, dim=1)
    return -(targets * F.log_softmax(student_scores / temperature, dim=1)).sum(dim=1).mean()


def check_teacher(teacher: nn.Module, features: int) -> None:
    """Raise BadInput unless the teacher returns `features` numbers for each image."""
    with torch.no_grad():
        output: Any = teacher(torch.zeros(2, 3, 64, 64))
    shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if shape != (2, features):
        raise BadInput(
            f"a teacher must return (images, {features}), and this one returns {shape}: remove its last layers"
        )


class SEED(nn.Module):
    """The encoder with a head that predicts the teacher's embedding, and the teacher.

    Args:
        encoder: The network to train.
        teacher: Network of the teacher, a key of `BACKBONES`.
        teacher_weights: Weights of the teacher, see `make_backbone`.
        queue: Number of earlier images to compare with.
        temperature: Temperature of the student's similarities.
        teacher_temperature: Temperature of the teacher's similarities.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = (CropSpec((0.2, 1.0), colours=_COLOURS),)
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(lr=0.03, batch_size=256, weight_decay=1e-4, larc=False)
    needs_labels: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        teacher: str = DEFAULT_BACKBONE,
        teacher_weights: str = PUBLISHED,
        queue: int = 65_536,
        temperature: float = 0.2,
        teacher_temperature: float = 0.01,
    ) -> None:
        super().__init__()
        if queue < 1:
            raise BadInput(f"option 'queue' of method seed must be at least 1, not {queue}")
        network = make_backbone(teacher, 0, weights=teacher_weights)
        self.encoder = encoder
        self.teacher = (
            Encoder(network.top, network.features, network.normalization, early_layers=0).requires_grad_(False).eval()
        )
        check_teacher(self.teacher, network.features)
        width = encoder.features
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, network.features))
        self.queue = EmbeddingQueue(queue, network.features)
        self._temperature = temperature
        self._teacher_temperature = teacher_temperature

    def train(self, mode: bool = True) -> SEED:
        """Set the mode of encoder and head; the teacher always stays in evaluation mode."""
        super().train(mode)
        self.teacher.eval()
        return self

    def param_groups(self) -> list[ParamGroup]:
        """Return one group with encoder and head; the teacher is not trained."""
        return [ParamGroup([*self.encoder.parameters(), *self.projector.parameters()])]

    def forward(self, views: Views, _fraction: float) -> PretrainOutput:
        """Compute the loss of one crop."""
        (crop,) = views.crops
        student = F.normalize(self.projector(self.encoder(crop)))
        with torch.no_grad():
            teacher = F.normalize(self.teacher(crop))
        loss = seed_loss(student, teacher, self.queue.rows(), self._temperature, self._teacher_temperature)
        self.queue.put(distributed.all_gather(teacher))
        return PretrainOutput(loss, student.detach())
