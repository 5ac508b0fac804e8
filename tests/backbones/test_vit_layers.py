"""Position embeddings of another size; the blocks are compared with plain functions in `test_vit`."""

from __future__ import annotations

import torch

from siesta.backbones.vit_layers import resize_positions

D = 192


def test_resizing_keeps_a_constant_grid_and_the_class_token() -> None:
    positions = torch.cat([torch.full((1, 1, D), 9.0), torch.full((1, 16, D), 2.0)], dim=1)
    resized = resize_positions(positions, torch.Size((1, 50, D)))
    assert resized.shape == (1, 50, D)
    torch.testing.assert_close(resized[0, :, 0], torch.tensor([9.0] + 49 * [2.0]))
    assert resize_positions(positions, torch.Size((1, 17, D))) is positions
