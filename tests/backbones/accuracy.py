"""Accuracy of a classifier on the thousand ImageNet images in the shared data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from siesta.contracts import Normalization
from siesta.images import Pixels, normalize, read_image

_BATCH_SIZE = 20


def read_like_a_learner(file: Path) -> Pixels:
    """Resize the short side to 256 and crop the central 224 x 224, as learners do."""
    return read_image(file, 224)


def read_whole_square(file: Path) -> Pixels:
    """Crop the central 256 x 256 of the file, which is its whole short side."""
    with Image.open(file) as picture:
        left, top = (picture.width - 256) // 2, (picture.height - 256) // 2
        return np.asarray(picture.convert("RGB").crop((left, top, left + 256, top + 256)))


def top1(
    network: nn.Module,
    normalization: Normalization,
    shared_data: Path,
    read: Callable[[Path], Pixels] = read_like_a_learner,
) -> float:
    """Return the top-1 accuracy, 0 to 1, of a network (B, 3, S, S) -> (B, 1000)."""
    files = sorted((shared_data / "imagenet_val_1000").glob("*.jpg"))
    assert len(files) == 1000
    right = 0
    for start in range(0, len(files), _BATCH_SIZE):
        batch = files[start : start + _BATCH_SIZE]
        with torch.no_grad():
            best = network(torch.from_numpy(normalize([read(file) for file in batch], normalization))).argmax(dim=1)
        right += sum(int(file.stem) == answer for file, answer in zip(batch, best.tolist(), strict=True))
    return right / len(files)
