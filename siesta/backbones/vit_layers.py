"""Layers of ViT-Tiny/16: patch embedding, blocks of attention and MLP, and the class token.

The position embedding has the grid of the image size that the network is created for. That of a file for another size
is interpolated bicubically, as DeiT does, and so it is for an image of another size.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Attention", "Block", "ClassToken", "Mlp", "PatchEmbedding", "resize_positions"]

_PATCH = 16
_FEATURES = 192
_HEADS = 3
_GRID = 14  # patches a side at 224 px

_layer_norm = partial(nn.LayerNorm, _FEATURES, eps=1e-6)


class PatchEmbedding(nn.Module):
    """Embed each patch linearly, put the class token in front, and add the position embedding."""

    def __init__(self, image_size: int) -> None:
        super().__init__()
        tokens = 1 + (image_size // _PATCH) ** 2
        positions = nn.init.trunc_normal_(torch.empty(1, 1 + _GRID**2, _FEATURES), std=0.02)
        self.cls_token = nn.Parameter(nn.init.trunc_normal_(torch.empty(1, 1, _FEATURES), std=0.02))
        self.pos_embed = nn.Parameter(resize_positions(positions, torch.Size((1, tokens, _FEATURES))))
        self.proj = nn.Conv2d(3, _FEATURES, _PATCH, _PATCH)

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, N, d) with N = 1 + (S // 16)^2; pixels beyond the last whole patch are not used."""
        patches = self.proj(images).flatten(2).transpose(1, 2)  # (B, N - 1, d)
        tokens = torch.cat([self.cls_token.expand(patches.shape[0], -1, -1), patches], dim=1)
        return tokens + resize_positions(self.pos_embed, tokens.shape[1:])


def resize_positions(positions: Tensor, shape: torch.Size) -> Tensor:
    """Interpolate a position embedding for another square grid of patches; the class token's is kept.

    Args:
        positions: (1, 1 + g^2, d); a tensor of any other shape is returned as it is.
        shape: (..., N, d) with N = 1 + h^2.

    Returns:
        (1, N, d).
    """
    tokens = positions.shape[1] if positions.ndim == 3 else 0
    old, new = (math.isqrt(max(count - 1, 0)) for count in (tokens, shape[-2]))
    if tokens in (0, shape[-2]) or tokens != 1 + old**2:
        return positions
    grid = positions[:, 1:].transpose(1, 2).reshape(1, -1, old, old)  # (1, d, g, g)
    resized = F.interpolate(grid, (new, new), mode="bicubic", align_corners=False).flatten(2).transpose(1, 2)
    return torch.cat([positions[:, :1], resized], dim=1)


class Attention(nn.Module):
    """Multi-head self-attention.

    The scores of all pairs of tokens are in memory: at 224 px half a megabyte a sample and block, at 512 px 13. torch's
    fused attention is not faster on a CPU, and torch counts no FLOPs of it there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.heads = _HEADS
        self.qkv = nn.Linear(_FEATURES, 3 * _FEATURES)
        self.proj = nn.Linear(_FEATURES, _FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        queries, keys, values = (
            self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        )  # each (B, h, N, d / h)
        scores = (queries * queries.shape[-1] ** -0.5) @ keys.transpose(2, 3)  # (B, h, N, N)
        attended = scores.softmax(dim=3) @ values
        out: Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return out


class Mlp(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(_FEATURES, 4 * _FEATURES)
        self.fc2 = nn.Linear(4 * _FEATURES, _FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        out: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return out


class Block(nn.Module):
    """Attention and MLP, each after a layer norm and with a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = _layer_norm()
        self.attn = Attention()
        self.norm2 = _layer_norm()
        self.mlp = Mlp()

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class ClassToken(nn.Module):
    """The class token after the last layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = _layer_norm()

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, d)."""
        out: Tensor = self.norm(x[:, 0])
        return out
