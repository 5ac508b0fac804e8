"""SEED (Fang et al. 2021, "SEED: Self-supervised Distillation for Visual Representation").

A teacher says how similar a picture is to others, the newest that it saw; the network learns to say the same. The
teacher is EfficientNet-Lite0 with its ImageNet-1K weights unless another is named: it has seen labels, which SEED's own
teachers have not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones import DEFAULT_BACKBONE, PUBLISHED, make_backbone
from siesta.errors import BadInput
from siesta.pretrain import ranks
from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Colours, Crop
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.queue import Queue

__all__ = ["SEED", "check_teacher", "seed_loss"]

_COLOURS = Colours((0.4, 0.4, 0.4, 0.1))  # MoCo v2's, which SEED takes over


def seed_loss(
    student: Tensor, teacher: Tensor, others: Tensor, temperature: float, teacher_temperature: float
) -> Tensor:
    """Cross-entropy between what teacher and student find similar, the teacher's own view of the picture included.

    Args:
        student: Embeddings of length one, (B, D).
        teacher: The same pictures by the teacher, (B, D).
        others: Pictures that passed before, by the teacher, (n, D).
        temperature: Of the student's similarities.
        teacher_temperature: Of the teacher's.
    """
    wanted, found = (
        torch.cat([(rows * teacher).sum(dim=1, keepdim=True), rows @ others.T], dim=1) for rows in (teacher, student)
    )  # (B, 1 + n)
    targets = F.softmax(wanted / teacher_temperature, dim=1)
    return -(targets * F.log_softmax(found / temperature, dim=1)).sum(dim=1).mean()


def check_teacher(teacher: nn.Module, features: int) -> None:
    """Refuses a teacher that does not give a vector of so many numbers for each picture."""
    with torch.no_grad():
        made: Any = teacher(torch.zeros(2, 3, 64, 64))
    shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
    if shape != (2, features):
        raise BadInput(f"a teacher gives (pictures, {features}) for a batch, this one {shape}: cut it off at its z")


class SEED(nn.Module):
    """The encoder with a head that speaks the teacher's language, and the teacher."""

    plan: ClassVar[tuple[Crop, ...]] = (Crop((0.2, 1.0), colours=_COLOURS),)
    recipe: ClassVar[Training] = Training(rate=0.03, batch=256, weight_decay=1e-4, larc=False)
    labelled: ClassVar[bool] = False

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
            raise BadInput("SEED compares a picture with those in its queue: give it room for one or more")
        known = make_backbone(teacher, 0, weights=teacher_weights)
        self.encoder = encoder
        self.teacher = Encoder(known.top, known.features, known.scaling, early=0).requires_grad_(False).eval()
        check_teacher(self.teacher, known.features)
        wide = encoder.features
        self.projector = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, known.features))
        self.queue = Queue(queue, known.features)
        self._temperature, self._teacher_temperature = temperature, teacher_temperature

    def train(self, mode: bool = True) -> SEED:
        """The teacher does not learn, nor do its batch norms."""
        super().train(mode)
        self.teacher.eval()
        return self

    def parts(self) -> list[Part]:
        """The encoder and its head."""
        return [Part([*self.encoder.parameters(), *self.projector.parameters()])]

    def forward(self, views: Views, _fraction: float) -> Outcome:
        """One crop -> loss."""
        (crop,) = views.crops
        student = F.normalize(self.projector(self.encoder(crop)))
        with torch.no_grad():
            teacher = F.normalize(self.teacher(crop))
        loss = seed_loss(student, teacher, self.queue.rows(), self._temperature, self._teacher_temperature)
        self.queue.put(ranks.gathered(teacher))
        return Outcome(loss, student.detach())
