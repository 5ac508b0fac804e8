"""Supervised training of the whole network, the upper bound of the SIESTA paper's table of methods.

The paper says no more than that; here it is softmax over a linear layer, random crops and flips, and SGD at the rate
that suits the paper's network at a batch of 64.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from torch.nn import functional as F

from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Crop
from siesta.pretrain.encoder import Encoder

__all__ = ["Supervised"]


class Supervised(nn.Module):
    """The encoder with a linear classifier."""

    plan: ClassVar[tuple[Crop, ...]] = (Crop((0.08, 1.0), colours=None),)
    recipe: ClassVar[Training] = Training(rate=0.2, weight_decay=1e-5, larc=False)
    labelled: ClassVar[bool] = True

    def __init__(self, encoder: Encoder, *, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.output = nn.Linear(encoder.features, classes)

    def parts(self) -> list[Part]:
        """All learn alike."""
        return [Part(self.parameters())]

    def forward(self, views: Views, _fraction: float) -> Outcome:
        """One crop -> loss."""
        (crop,) = views.crops
        return Outcome(F.cross_entropy(self.output(self.encoder(crop)), views.labels))
