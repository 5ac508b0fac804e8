"""The settings of a pre-training run, and the identity that tells one run from another."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from siesta.backbones import MAX_IMAGE_SIZE, MIN_IMAGE_SIZE, PUBLISHED, RANDOM
from siesta.errors import BadInput
from siesta.files import sha256
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.options import check_method_options

__all__ = ["DEFAULT_EPOCHS", "PretrainSettings"]

DEFAULT_EPOCHS = 2000
_BOUNDS = {
    "image_size": (MIN_IMAGE_SIZE, MAX_IMAGE_SIZE),
    "epochs": (1, 10**9),
    "batch_size": (2, 65_536),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class PretrainSettings:
    """Settings of a run; the defaults are the paper's.

    Attributes:
        method: A key of `PRETRAINERS`.
        backbone: A key of `BACKBONES`.
        weights: Initial weights, see `make_backbone`.
        image_size: Side of the largest crops.
        epochs: Passes over all images.
        seconds: Seconds to train instead; such a run is not reproducible.
        batch_size: Images in a batch, over all ranks.
        lr: Highest learning rate; the method's own, scaled with the batch size, when None.
        seed: Determines the initial weights of the method, the order of images and their crops.
        options: Options of the method by name.
    """

    method: str
    backbone: str = "mobilenet_v3_large"
    weights: str = RANDOM
    image_size: int = 224
    epochs: int | None = None
    seconds: float | None = None
    batch_size: int = 64
    lr: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        PRETRAINERS.check(self.method)
        if self.epochs is not None and self.seconds is not None:
            raise BadInput("both epochs and seconds are given: give only one of them")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BadInput(f"{name.replace('_', ' ')} must be in {low}..{high}, not {value}")
        for name, value in (("seconds", self.seconds), ("learning rate", self.lr)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise BadInput(f"{name} must be above zero, not {value}")
        check_method_options(self.method, PRETRAINERS[self.method], self.options)

    @property
    def total_epochs(self) -> int | None:
        """Epochs to train; None for a run by time."""
        return (self.epochs or DEFAULT_EPOCHS) if self.seconds is None else None

    @property
    def max_lr(self) -> float:
        """Highest learning rate: the given one, or the method's own for this batch size."""
        recipe = PRETRAINERS[self.method].recipe
        return recipe.lr * self.batch_size / recipe.batch_size if self.lr is None else self.lr

    def identity(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:
        """Return the settings with defaults filled in, a hash of the images and a hash of the initial weights.

        Records and checkpoints contain it; its keys are part of their format. Images count by name and size, a file
        of weights by its content.

        Args:
            folder: Folder of the images.
            files: The images in it.
        """
        digest = hashlib.sha256()
        for file in files:
            size = file.stat().st_size if file.exists() else -1
            digest.update(f"{file.relative_to(folder)}\0{size}\0".encode("utf-8", "surrogateescape"))
        is_file = self.weights not in (RANDOM, PUBLISHED) and Path(self.weights).is_file()
        return {
            **{name: value for name, value in asdict(self).items() if name != "lr"},
            "epochs": self.total_epochs,
            "rate": self.max_lr,  # the key of version 0.1, so that its unfinished runs can be resumed
            "pictures": digest.hexdigest(),
            "start": sha256(Path(self.weights)) if is_file else None,
        }
