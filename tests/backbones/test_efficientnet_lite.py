"""EfficientNet-Lite0: TensorFlow's padding, and the published weights at work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from siesta.backbones import RANDOM, make_backbone
from siesta.backbones.efficientnet_lite import SameConv, imagenet_classifier
from tests.backbones.accuracy import top1


def test_strided_convolutions_pad_as_tensorflow_does() -> None:
    """SAME: output ceil(n / 2); for even inputs the odd pixel of padding is at the far edge."""
    conv = SameConv(1, 1, 3, 2, bias=False)
    nn.init.ones_(conv.weight)
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    padded = np.pad(image[0, 0].numpy(), ((0, 1), (0, 1)))
    expected = [[padded[r : r + 3, c : c + 3].sum() for c in (0, 2)] for r in (0, 2)]
    assert conv(image)[0, 0].tolist() == expected
    assert conv(torch.zeros(1, 1, 5, 7)).shape == (1, 1, 3, 4)


@pytest.mark.slow
def test_imagenet_accuracy_with_the_original_output(shared_data: Path) -> None:
    """Padding, scale and weights are right: 72.9 % is what these files give."""
    assert top1(imagenet_classifier(), make_backbone(weights=RANDOM).scaling, shared_data) >= 0.72
