"""What a method of pre-training is: crops in, a loss out, and how its parameters learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from siesta.pretrain.crops import Crop
from siesta.pretrain.encoder import Encoder

__all__ = ["Outcome", "Part", "Pretrainer", "Training", "Views", "eased"]


@dataclass(frozen=True)
class Views:
    """A batch of pictures as a method sees them.

    Attributes:
        crops: One (B, 3, s, s) for each entry of the method's plan, pixels in 0..255.
        labels: Index of each picture's class, (B,); -1 where there are none.
    """

    crops: Sequence[Tensor]
    labels: Tensor


@dataclass(frozen=True)
class Outcome:
    """What a method makes of a batch.

    Attributes:
        loss: To go down; a scalar, the mean over this rank's pictures or the same on all ranks.
        embedding: What it compares, of the first crop, (B, D): watched for collapse; None where labels forbid that.
        shares: How it divides each picture among its prototypes, (B, K); None where it has none.
    """

    loss: Tensor
    embedding: Tensor | None = None
    shares: Tensor | None = None


@dataclass(frozen=True)
class Training:
    """How a method's own paper trains.

    Attributes:
        rate: The highest, for a batch of `batch`; it scales linearly with the batch.
        final: Share of it that is left in the end; between them a cosine.
        batch: What `rate` is for.
        warm_up: Share of the run in which the rate rises in a straight line.
        weight_decay: Of SGD with momentum 0.9.
        larc: Whether each tensor's step is as long as the tensor asks for, see `Larc`.
        vectors: Rate of biases and norms as a share of `rate`; they then take plain steps, without decay. None treats
            them like everything else.
    """

    rate: float
    final: float = 0.0
    batch: int = 64
    warm_up: float = 0.0
    weight_decay: float = 1e-6
    larc: bool = True
    vectors: float | None = None

    def share(self, fraction: float) -> float:
        """Share of the highest rate at a fraction of the run."""
        if fraction < self.warm_up:
            return fraction / self.warm_up
        return eased(1.0, self.final, (fraction - self.warm_up) / (1 - self.warm_up))


def eased(start: float, end: float, fraction: float) -> float:
    """From start to end along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * min(fraction, 1.0))) / 2


def _always(_fraction: float) -> float:
    return 1.0


@dataclass(frozen=True)
class Part:
    """Parameters that learn alike.

    Attributes:
        parameters: Of one method, each in one part only.
        factor: Fraction of the run -> factor on their rate; zero leaves them alone, below zero they go uphill.
    """

    parameters: Iterable[nn.Parameter]
    factor: Callable[[float], float] = _always


class Pretrainer(Protocol):
    """A module made as `Method(encoder, *, options)`.

    Attributes:
        plan: The crops it wants.
        recipe: How it is trained.
        labelled: Whether it needs labels.
    """

    plan: ClassVar[tuple[Crop, ...]]
    recipe: ClassVar[Training]
    labelled: ClassVar[bool]

    def __init__(self, encoder: Encoder, **options: Any) -> None: ...

    @property
    def encoder(self) -> Encoder:
        """What is kept."""
        ...

    def __call__(self, views: Views, fraction: float) -> Outcome:
        """The loss of a batch at a fraction of the run, over all ranks where it is one of the whole batch."""
        ...

    def parts(self) -> list[Part]:
        """Every parameter that learns."""
        ...
