"""DyTox's transformer: shared blocks of gated positional self-attention (ConViT), and one block that a token of each
step goes through together with the patches.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["PositionalAttention", "TaskAttention", "TaskHeads", "TaskTransformer", "patch_side"]

_STD = 0.02  # of random weights
_MLP = 4  # width of the MLP, in widths of a token


def patch_side(image_size: int) -> int:
    """Return the side of a patch: 4 pixels below 64, 8 below 128, else 16, as DyTox has for 32 and 224."""
    return 4 if image_size < 64 else 8 if image_size < 128 else 16


def _linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.trunc_normal_(layer.weight, std=_STD)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def _relative_positions(side: int) -> Tensor:
    """Return (dx, dy, dx^2 + dy^2) between all pairs of a square grid's positions, (N, N, 3)."""
    steps = torch.arange(side)
    rows, columns = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="ij"))
    across, down = (values[None, :] - values[:, None] for values in (columns, rows))
    return torch.stack([across, down, across**2 + down**2], dim=2).float()


class PositionalAttention(nn.Module):
    """Self-attention that is gated between the content of patches and their relative positions (GPSA)."""

    positions: Tensor

    def __init__(self, width: int, heads: int, side: int) -> None:
        super().__init__()
        self.heads = heads
        self.qk = _linear(width, 2 * width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.proj = _linear(width, width)
        self.pos_proj = _linear(3, heads)
        self.gate = nn.Parameter(torch.ones(heads))
        self.register_buffer("positions", _relative_positions(side), persistent=False)
        self._start_local()

    @torch.no_grad()
    def _start_local(self) -> None:
        """Let each head begin by attending to one neighbour, as a convolution does."""
        nn.init.eye_(self.v.weight)
        side = math.isqrt(self.heads)
        centre = (side - 1) / 2 if side % 2 == 0 else side // 2
        for across in range(side):
            for down in range(side):
                weights = torch.tensor([2 * (down - centre), 2 * (across - centre), -1.0])
                self.pos_proj.weight[across + side * down] = weights

    def attention(self, x: Tensor) -> Tensor:
        """(B, N, d) -> the share of each patch in each other's result, (B, h, N, N)."""
        queries, keys = self.qk(x).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        content = (queries @ keys.transpose(2, 3) * queries.shape[-1] ** -0.5).softmax(dim=3)
        place = self.pos_proj(self.positions).permute(2, 0, 1).softmax(dim=2)  # (h, N, N)
        gate = self.gate.sigmoid()[:, None, None]
        shares: Tensor = (1 - gate) * content + gate * place
        return shares

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        values = self.v(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        out: Tensor = self.proj((self.attention(x) @ values).transpose(1, 2).flatten(2))
        return out


class TaskAttention(nn.Module):
    """Attention of the first token to all tokens (CaiT's class attention)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (_linear(width, width, bias=False) for _ in range(3))
        self.proj = _linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 1 + N, d) -> (B, 1, d)."""
        queries, keys, values = (
            layer(tokens).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer, tokens in ((self.q, x[:, :1]), (self.k, x), (self.v, x))
        )
        shares = (queries @ keys.transpose(2, 3) * queries.shape[-1] ** -0.5).softmax(dim=3)
        out: Tensor = self.proj((shares @ values).transpose(1, 2).flatten(2))
        return out


class _Block(nn.Module):
    """Attention and MLP, each after a layer norm and with a skip connection."""

    def __init__(self, attention: nn.Module, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention
        self.mlp = nn.Sequential(_linear(width, _MLP * width), nn.GELU(), _linear(_MLP * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, d) -> as many as the attention returns, the first ones."""
        attended = self.attention(self.norm1(x))
        x = x[:, : attended.shape[1]] + attended
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class TaskTransformer(nn.Module):
    """Images -> an embedding for each step's token."""

    def __init__(self, image_size: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        patch = patch_side(image_size)
        side = image_size // patch
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.empty(1, side**2, width))
        for weights in (self.patches.weight, self.positions):
            nn.init.trunc_normal_(weights, std=_STD)
        blocks = (_Block(PositionalAttention(width, heads, side), width) for _ in range(depth - 1))
        self.shared = nn.Sequential(*blocks)
        self.decoder = _Block(TaskAttention(width, heads), width)
        self.tokens = nn.ParameterList()

    def add_token(self) -> None:
        """Add the token of a step."""
        width = self.positions.shape[2]
        self.tokens.append(nn.Parameter(nn.init.trunc_normal_(torch.empty(1, 1, width), std=_STD)))

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the shared blocks and the patch embedding."""
        return [*self.patches.parameters(), self.positions, *self.shared.parameters()]

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, T, d) for T steps."""
        x = self.shared(self.patches(images).flatten(2).transpose(1, 2) + self.positions)
        embedded = [
            self.decoder(torch.cat([token.expand(len(x), -1, -1), x], dim=1)) for token in self.tokens
        ]  # each (B, 1, d)
        return torch.cat(embedded, dim=1)


class TaskHeads(nn.Module):
    """A layer norm and a linear output for each step, on the embedding of its token alone."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.heads = nn.ModuleList()

    def __len__(self) -> int:
        return sum(head[1].out_features for head in self.heads)  # type: ignore[index]

    def make_head(self, classes: int) -> nn.Sequential:
        """Return a head for so many classes, which is not added."""
        return nn.Sequential(nn.LayerNorm(self.width), nn.Linear(self.width, classes))

    def grow(self, classes: int) -> None:
        """Add a head for so many classes."""
        self.heads.append(self.make_head(classes))

    def forward(self, embedded: Tensor) -> Tensor:
        """(B, T, d) -> (B, K)."""
        return torch.cat([head(embedded[:, index]) for index, head in enumerate(self.heads)], dim=1)


def binary_loss(logits: Tensor, rows: Tensor) -> Tensor:
    """Return the mean binary cross-entropy of logits (B, K) with classes (B,)."""
    return F.binary_cross_entropy_with_logits(logits, F.one_hot(rows, logits.shape[1]).to(logits.dtype))
