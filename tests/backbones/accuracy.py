"""How well a classifier does on the thousand ImageNet pictures that lie beside the checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from siesta.contracts import Scaling
from siesta.images import Pixels, read_image, scaled

_AT_ONCE = 20


def as_learners_read(file: Path) -> Pixels:
    """The middle 224 x 224 of a short side of 256."""
    return read_image(file, 224)


def whole_square(file: Path) -> Pixels:
    """The middle square of a file as it lies there, 256 x 256: nothing of the short side is cut away."""
    with Image.open(file) as picture:
        left, top = (picture.width - 256) // 2, (picture.height - 256) // 2
        return np.asarray(picture.convert("RGB").crop((left, top, left + 256, top + 256)))


def top1(
    network: nn.Module, scaling: Scaling, shared_data: Path, read: Callable[[Path], Pixels] = as_learners_read
) -> float:
    """Share of right answers of a network (B, 3, S, S) -> (B, 1000)."""
    files = sorted((shared_data / "imagenet_val_1000").glob("*.jpg"))
    assert len(files) == 1000
    right = 0
    for start in range(0, len(files), _AT_ONCE):
        some = files[start : start + _AT_ONCE]
        with torch.no_grad():
            best = network(scaled([read(file) for file in some], scaling)).argmax(dim=1)
        right += sum(int(file.stem) == answer for file, answer in zip(some, best.tolist(), strict=True))
    return right / len(files)
