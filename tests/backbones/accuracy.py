"""How well a classifier does on the thousand ImageNet pictures that lie beside the checkout."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from siesta.contracts import Scaling
from siesta.images import read_image, scaled


def top1(network: nn.Module, scaling: Scaling, shared_data: Path) -> float:
    """Share of right answers of a network (B, 3, 224, 224) -> (B, 1000)."""
    files = sorted((shared_data / "imagenet_val_1000").glob("*.jpg"))
    assert len(files) == 1000
    right = 0
    for start in range(0, len(files), 50):
        some = files[start : start + 50]
        with torch.no_grad():
            best = network(scaled([read_image(file, 224) for file in some], scaling)).argmax(dim=1)
        right += sum(int(file.stem) == answer for file, answer in zip(some, best.tolist(), strict=True))
    return right / len(files)
