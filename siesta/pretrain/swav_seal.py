"""SwAV + SEAL (Sarfi et al. 2023, "Simulated Annealing in Early Layers Leads to Better Generalization").

A run is divided into generations. In each but the first, early layers go uphill for a while, a hundredth as fast as
they would go down and without decay, while the later ones learn as ever. Ten generations, a quarter of each uphill, as
its authors have it on Tiny-ImageNet; early are the layers below the network's usual cut, where they have the first two
of a ResNet's four stages. Rates follow SwAV's one cosine over the whole run.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Crop
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.swav import SwAV

__all__ = ["SwAVSEAL", "annealed"]


def annealed(fraction: float, generations: int, uphill: float, speed: float) -> float:
    """Factor on the rate of early layers at a fraction of the run.

    >>> [annealed(fraction, 10, 0.25, 0.01) for fraction in (0.01, 0.09, 0.11, 0.13)]
    [1.0, 1.0, -0.01, 1.0]
    """
    generation, place = divmod(fraction * generations, 1.0)
    return -speed if generation >= 1 and place < uphill else 1.0


class SwAVSEAL(nn.Module):
    """SwAV whose early layers forget a little, again and again."""

    plan: ClassVar[tuple[Crop, ...]] = SwAV.plan
    recipe: ClassVar[Training] = SwAV.recipe
    labelled: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        prototypes: int = 1000,
        queue: int = 384,
        hidden: int = 2048,
        generations: int = 10,
        uphill: float = 0.25,
        speed: float = 0.01,
    ) -> None:
        super().__init__()
        self.swav = SwAV(encoder, prototypes=prototypes, queue=queue, hidden=hidden)
        self._generations, self._uphill, self._speed = generations, uphill, speed

    @property
    def encoder(self) -> Encoder:
        """What is kept."""
        return self.swav.encoder

    def parts(self) -> list[Part]:
        """SwAV's, early layers apart."""
        early = list(self.swav.encoder.layers[: self.swav.encoder.early].parameters())
        apart = {id(parameter) for parameter in early}
        others = [
            Part([parameter for parameter in part.parameters if id(parameter) not in apart], part.factor)
            for part in self.swav.parts()
        ]
        return [Part(early, self._factor), *others]

    def _factor(self, fraction: float) -> float:
        return annealed(fraction, self._generations, self._uphill, self._speed)

    def forward(self, views: Views, fraction: float) -> Outcome:
        """As SwAV."""
        outcome: Outcome = self.swav(views, fraction)
        return outcome
