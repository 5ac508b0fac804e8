"""Learners and images to measure with."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from siesta.backbones import BACKBONES, RANDOM
from siesta.head.kinds import DISCRIMINANT
from siesta.learner import IN_MEMORY, Siesta

__all__ = ["NETWORKS", "learner_of", "noise"]

NETWORKS = ("efficientnet_lite0", "mobilenet_v3_large", "mobilenet_v2", "resnet18")


def noise(count: int, size: int) -> list[npt.NDArray[np.uint8]]:
    """Return random images (size, size, 3), all different, the same each time."""
    return list(np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8))


def learner_of(backbone: str, image_size: int, path: str | Path = IN_MEMORY, head: str = DISCRIMINANT) -> Siesta:
    """Create a learner; a backbone without published weights gets random ones, and a codec fitted on noise."""
    if BACKBONES[backbone].published is not None:
        return Siesta.create(path, backbone=backbone, image_size=image_size, head=head)
    with tempfile.TemporaryDirectory() as folder:
        for index, pixels in enumerate(noise(24, image_size)):
            Image.fromarray(pixels).save(Path(folder) / f"{index}.png")
        return Siesta.create(path, backbone=backbone, image_size=image_size, weights=RANDOM, base=folder, head=head)
