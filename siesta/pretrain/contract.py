"""The protocol of a pre-training method: crops in, a loss out, and how its parameters are trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder

__all__ = ["ParamGroup", "PretrainOutput", "Pretrainer", "TrainingRecipe", "Views", "cosine_schedule"]


@dataclass(frozen=True)
class Views:
    """A batch of images as crops.

    Attributes:
        crops: One tensor (B, 3, s, s) for each of the method's `crop_specs`, pixels in 0..255.
        labels: Class index of each image, (B,); -1 where there is no label.
    """

    crops: Sequence[Tensor]
    labels: Tensor


@dataclass(frozen=True)
class PretrainOutput:
    """What a method computes from a batch.

    Attributes:
        loss: Scalar to minimise: the mean over this rank's images, or a value that is the same on all ranks.
        embedding: Embeddings of the first crop, (B, D), to detect collapse; None for methods that use labels.
        assignments: Soft assignments of images to prototypes, (B, K); None for methods without prototypes.
    """

    loss: Tensor
    embedding: Tensor | None = None
    assignments: Tensor | None = None


@dataclass(frozen=True)
class TrainingRecipe:
    """Optimiser and schedule of a method's paper.

    Attributes:
        lr: Highest learning rate for a batch of `batch_size`; it scales linearly with the batch.
        final_lr_factor: Learning rate at the end as a fraction of the highest; a cosine leads there.
        batch_size: Batch size that `lr` is for.
        warmup: Fraction of the run over which the learning rate rises linearly.
        weight_decay: Weight decay of SGD with momentum 0.9.
        larc: Whether the gradient of each tensor is scaled layer by layer, see `Larc`.
        vector_lr_factor: Learning rate of biases and norms as a fraction of `lr`; they then take plain steps without
            weight decay. None treats them like all other parameters.
    """

    lr: float
    final_lr_factor: float = 0.0
    batch_size: int = 64
    warmup: float = 0.0
    weight_decay: float = 1e-6
    larc: bool = True
    vector_lr_factor: float | None = None

    def lr_factor(self, fraction: float) -> float:
        """Return the learning rate at a fraction of the run as a fraction of the highest."""
        if fraction < self.warmup:
            return fraction / self.warmup
        return cosine_schedule(1.0, self.final_lr_factor, (fraction - self.warmup) / (1 - self.warmup))


def cosine_schedule(start: float, end: float, fraction: float) -> float:
    """Return the value at `fraction` of a half cosine from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * min(fraction, 1.0))) / 2


def _constant(_fraction: float) -> float:
    return 1.0


@dataclass(frozen=True)
class ParamGroup:
    """Parameters that share a learning-rate factor.

    Attributes:
        parameters: Parameters of a method; each belongs to one group only.
        lr_factor: Maps the fraction of the run to a factor on the learning rate. Zero skips the update, a negative
            factor ascends the loss.
    """

    parameters: Iterable[nn.Parameter]
    lr_factor: Callable[[float], float] = _constant


class Pretrainer(Protocol):
    """A module that is constructed as `Method(encoder, *, options)`.

    Attributes:
        crop_specs: The crops that it takes of each image.
        recipe: Its optimiser and schedule.
        needs_labels: Whether it needs class labels.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]]
    recipe: ClassVar[TrainingRecipe]
    needs_labels: ClassVar[bool]

    def __init__(self, encoder: Encoder, **options: Any) -> None: ...

    @property
    def encoder(self) -> Encoder:
        """The network that is kept after training."""
        ...

    def __call__(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of a batch at a fraction of the run; statistics of the batch are those of all ranks."""
        ...

    def param_groups(self) -> list[ParamGroup]:
        """Return every trainable parameter, each in one group."""
        ...
