"""ViT-Tiny/16 (Dosovitskiy et al. 2021) with the sizes and the tensor names of DeiT-Tiny (Touvron et al. 2021).

The network cuts an image into patches of 16 x 16 pixels and computes one token for each, after a class token. Its
latents are tokens (N, d), 197 x 192 at 224 px, at every cut; z is the class token after the last layer norm, so it
follows no activation. The position embedding has the grid of the image size that the network is created for. That of a
file for another size is interpolated bicubically, as DeiT does, and so it is for an image of another size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from siesta.backbones.checkpoint_layouts import CheckpointLayout
from siesta.backbones.spec import IMAGENET, BackboneSpec
from siesta.contracts import SleepDefaults

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

__all__ = ["VIT_TINY_16"]

_FEATURES = 192
_BLOCKS = 12
_GRID = 14  # patches a side at 224 px


def _layers(image_size: int) -> Iterator[nn.Module]:
    """Yield the patch embedding, twelve blocks and the tail."""
    from siesta.backbones.vit_layers import Block, ClassToken, PatchEmbedding

    yield PatchEmbedding(image_size)
    for _ in range(_BLOCKS):
        yield Block()
    yield ClassToken()


def _deit(_network: nn.Sequential) -> Iterator[str]:
    """Yield the module names of DeiT and timm."""
    yield from ("", "patch_embed.proj")  # class token and position embedding have no module of their own
    for index in range(_BLOCKS):
        for part in ("norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"):
            yield f"blocks.{index}.{part}"
    yield "norm"


def _resize_positions(positions: Tensor, shape: torch.Size) -> Tensor:
    """Interpolate a position embedding for another grid of patches."""
    from siesta.backbones.vit_layers import resize_positions

    return resize_positions(positions, shape)


VIT_TINY_16 = BackboneSpec(
    layers=_layers,
    features=_FEATURES,
    default_cut=7,  # the embedding and the lower half of the blocks
    cuts=dict.fromkeys((4, 7, 10), (1 + _GRID**2, _FEATURES)),
    normalization=IMAGENET,
    defaults=SleepDefaults(lr=0.01, layer_decay=0.99, scale=16.0, dropout=0.2),
    last_activation=None,
    layouts={"deit": CheckpointLayout(_deit)},
    resize={"0.pos_embed": _resize_positions},
)
