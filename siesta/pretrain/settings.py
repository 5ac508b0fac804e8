"""What a run of pre-training is: its settings, and what tells it from another run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from siesta.backbones import MAX_IMAGE_SIZE, MIN_IMAGE_SIZE, PUBLISHED, RANDOM
from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.options import checked_options
from siesta.store.files import sha256

__all__ = ["EPOCHS", "Settings"]

EPOCHS = 2000
_BOUNDS = {
    "image_size": (MIN_IMAGE_SIZE, MAX_IMAGE_SIZE),
    "epochs": (1, 10**9),
    "batch_size": (2, 65_536),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class Settings:
    """What a run is; the paper's values unless something else is said.

    Attributes:
        method: A key of `PRETRAINERS`.
        backbone: A key of `BACKBONES`.
        weights: What it starts from, see `make_backbone`.
        image_size: Side of the largest crops.
        epochs: Passes over all pictures.
        seconds: How long to train, in their place; such a run cannot be repeated exactly.
        batch_size: Pictures a step, over all ranks.
        rate: The highest; the method's own, scaled with the batch, when None.
        seed: Of the method's own weights, orders and crops.
        options: Of the method, by name.
    """

    method: str
    backbone: str = "mobilenet_v3_large"
    weights: str = RANDOM
    image_size: int = 224
    epochs: int | None = None
    seconds: float | None = None
    batch_size: int = 64
    rate: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in PRETRAINERS:
            raise BadInput(f"there is no method '{self.method}': choose one of {', '.join(PRETRAINERS)}")
        if self.epochs is not None and self.seconds is not None:
            raise BadInput("say how long to train by epochs or by seconds, not by both")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BadInput(f"{name.replace('_', ' ')} lies in {low}..{high}, not {value}")
        for name in ("seconds", "rate"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise BadInput(f"{name} must be above zero, not {value}")
        checked_options(self.method, PRETRAINERS[self.method], self.options)

    @property
    def passes(self) -> int | None:
        """Epochs to train; None for a run by time."""
        return (self.epochs or EPOCHS) if self.seconds is None else None

    @property
    def highest_rate(self) -> float:
        """What is asked for, or the method's own for this batch."""
        recipe = PRETRAINERS[self.method].recipe
        return recipe.rate * self.batch_size / recipe.batch if self.rate is None else self.rate

    def identity(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:
        """What a run is, all filled in: pictures stand there by names and sizes, a file of weights by its content."""
        digest = hashlib.sha256()
        for file in files:
            size = file.stat().st_size if file.exists() else -1
            digest.update(f"{file.relative_to(folder)}\0{size}\0".encode("utf-8", "surrogateescape"))
        named = self.weights in (RANDOM, PUBLISHED) or not Path(self.weights).is_file()
        return {
            **asdict(self),
            "epochs": self.passes,
            "rate": self.highest_rate,
            "pictures": digest.hexdigest(),
            "start": None if named else sha256(Path(self.weights)),
        }
