"""Random crops against crops that are cut and resized one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional as F

from siesta.sleep.crop import random_crops


def ramps(count: int, rows: int, columns: int) -> torch.Tensor:
    """Return maps (B, 2, r, s) whose values are the row and the column of each cell's centre, from 0 to 1."""
    down = (torch.arange(rows) + 0.5) / rows
    right = (torch.arange(columns) + 0.5) / columns
    return torch.stack(torch.meshgrid(down, right, indexing="ij")).expand(count, 2, rows, columns).contiguous()


@pytest.mark.parametrize("least", [0.2, 0.6])
def test_crops_are_boxes_of_the_drawn_area_inside_the_map(least: float) -> None:
    crops = random_crops(ramps(400, 8, 12), least, np.random.default_rng(0))
    inner = crops[:, :, 1:-1, 1:-1]  # cells at the border of a large crop repeat the map's border
    side = (inner[:, 0, -1, 0] - inner[:, 0, 0, 0]) / ((8 - 3) / 8)
    areas = side.square()
    assert least - 0.02 < areas.min() < least + 0.05 and 0.95 < areas.max() < 1.02
    assert abs(float(areas.mean()) - (1 + least) / 2) < 0.03, "areas are drawn evenly"
    wide = (inner[:, 1, 0, -1] - inner[:, 1, 0, 0]) / ((12 - 3) / 12)
    torch.testing.assert_close(wide, side, atol=0.02, rtol=0.0)
    assert crops.min() >= 0 and crops.max() <= 1
    centres = inner.mean(dim=(2, 3))
    assert (centres.std(dim=0) > 0.02).all(), "they are in different places"
    torch.testing.assert_close(centres.mean(dim=0), torch.full((2,), 0.5), atol=0.03, rtol=0.0)


def test_a_crop_is_what_cutting_and_resizing_gives() -> None:
    class TopLeftQuarter(np.random.Generator):
        def random(self, size: tuple[int, int], dtype: type) -> npt.NDArray[np.float32]:  # type: ignore[override]
            return np.zeros(size, dtype)

    maps = torch.randn(2, 3, 8, 8)
    expected = F.interpolate(maps[:, :, :4, :4], size=(8, 8), mode="bilinear", align_corners=False)
    crops = random_crops(maps, 0.25, TopLeftQuarter(np.random.PCG64(0)))
    torch.testing.assert_close(crops[:, :, 1:-1, 1:-1], expected[:, :, 1:-1, 1:-1])


def test_nothing_is_cropped_with_a_share_of_one_or_from_tokens() -> None:
    maps, tokens = torch.randn(2, 3, 4, 4), torch.randn(2, 17, 6)
    assert random_crops(maps, 1.0, np.random.default_rng(0)) is maps
    assert random_crops(tokens, 0.4, np.random.default_rng(0)) is tokens
