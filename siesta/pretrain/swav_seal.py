"""SwAV + SEAL (Sarfi et al. 2023, "Simulated Annealing in Early Layers Leads to Better Generalization").

A run is divided into generations. At the start of each but the first, early layers ascend the loss with a hundredth of
the learning rate and without weight decay, while later layers are trained as always. Ten generations with a quarter of
each ascending are its authors' values for Tiny-ImageNet. Early layers are those below the network's default cut, where
the authors have the first two of a ResNet's four stages. The learning rate follows SwAV's one cosine over the run.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.swav import SwAV

__all__ = ["SwAVSEAL", "early_lr_factor"]


def early_lr_factor(fraction: float, generations: int, uphill: float, speed: float) -> float:
    """Return the learning-rate factor of early layers at a fraction of the run.

    Args:
        fraction: Fraction of the run.
        generations: Number of generations in it.
        uphill: Fraction of each generation but the first in which early layers ascend.
        speed: Learning rate of the ascent as a fraction of the current one.

    Example:
        >>> [early_lr_factor(fraction, 10, 0.25, 0.01) for fraction in (0.01, 0.09, 0.11, 0.13)]
        [1.0, 1.0, -0.01, 1.0]
    """
    generation, position = divmod(fraction * generations, 1.0)
    return -speed if generation >= 1 and position < uphill else 1.0


class SwAVSEAL(nn.Module):
    """SwAV whose early layers ascend the loss from time to time.

    Args:
        encoder: The network to train.
        prototypes: See `SwAV`.
        queue: See `SwAV`.
        hidden: See `SwAV`.
        generations: Number of generations in a run.
        uphill: Fraction of each generation but the first in which early layers ascend.
        speed: Learning rate of the ascent as a fraction of the current one.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = SwAV.crop_specs
    recipe: ClassVar[TrainingRecipe] = SwAV.recipe
    needs_labels: ClassVar[bool] = False

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
        self._generations = generations
        self._uphill = uphill
        self._speed = speed

    @property
    def encoder(self) -> Encoder:
        """The network that is kept after training."""
        return self.swav.encoder

    def param_groups(self) -> list[ParamGroup]:
        """Return the groups of SwAV with a separate group for early layers."""
        early = list(self.swav.encoder.layers[: self.swav.encoder.early_layers].parameters())
        early_ids = {id(parameter) for parameter in early}
        others = [
            ParamGroup([parameter for parameter in group.parameters if id(parameter) not in early_ids], group.lr_factor)
            for group in self.swav.param_groups()
        ]
        return [ParamGroup(early, self._early_lr_factor), *others]

    def _early_lr_factor(self, fraction: float) -> float:
        return early_lr_factor(fraction, self._generations, self._uphill, self._speed)

    def forward(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of SwAV."""
        output: PretrainOutput = self.swav(views, fraction)
        return output
