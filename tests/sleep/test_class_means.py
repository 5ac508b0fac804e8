"""Class means that follow the top."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from siesta.head.cosine import unit_vectors
from siesta.sleep.batch import Batch
from siesta.sleep.class_means import RunningClassMeans
from tests.sleep.test_loop import CPU, make_head

FEATURES = torch.rand(2, 24, generator=torch.Generator().manual_seed(3))
ROWS = torch.tensor([0, 2])
OTHER_ROWS = torch.tensor([1, 1])


@pytest.mark.parametrize(("share", "rows"), [(1.0, ROWS), (0.96, ROWS), (0.03, OTHER_ROWS), (0.5, None)])
def test_features_count_for_the_dominant_part_and_older_ones_fade(share: float, rows: torch.Tensor | None) -> None:
    means = RunningClassMeans(make_head(), CPU)
    expected = torch.from_numpy(make_head().weights())
    if rows is not None:
        expected = expected.index_add(0, rows, FEATURES)
    means.add(FEATURES, Batch(torch.zeros(2), ROWS, OTHER_ROWS, share), lr_share=0.5)
    torch.testing.assert_close(means.totals, expected * (1 - 0.03 * 0.5))


def test_the_blend_lies_between_vectors_and_means() -> None:
    means = RunningClassMeans(make_head(), CPU)
    vectors = torch.rand(3, 24, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(means.blend(vectors, 0.0), F.normalize(vectors))
    torch.testing.assert_close(means.blend(vectors, 1.0), torch.from_numpy(unit_vectors(make_head().weights())))
    half = (F.normalize(vectors) + torch.from_numpy(unit_vectors(make_head().weights()))) / 2
    torch.testing.assert_close(means.blend(vectors, 0.5), half)
