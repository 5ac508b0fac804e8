"""Random crops of what is rehearsed: feature maps, or stored images."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["random_crops"]


def random_crops(latents: Tensor, least: float, rng: np.random.Generator) -> Tensor:
    """Return a random crop of each feature map, resized to the size of the map by bilinear interpolation.

    A crop has the proportions of the map, a share of its area between `least` and 1, and any place inside it.

    Args:
        latents: Feature maps or images, (B, d, r, s). Tokens (B, N, d) are returned as they are.
        least: Least share of the area; 1 crops nothing.
        rng: Draws areas and places.
    """
    if least == 1 or latents.ndim != 4:
        return latents
    drawn = torch.from_numpy(rng.random((len(latents), 3), dtype=np.float32)).to(latents.device)
    sides = (least + (1 - least) * drawn[:, 0]).sqrt()
    transform = torch.zeros(len(latents), 2, 3, device=latents.device)
    transform[:, 0, 0] = sides
    transform[:, 1, 1] = sides
    transform[:, :, 2] = (1 - sides)[:, None] * (2 * drawn[:, 1:] - 1)  # of the centre, in half sides
    grid = F.affine_grid(transform, list(latents.shape), align_corners=False)
    return F.grid_sample(latents, grid, padding_mode="border", align_corners=False)
