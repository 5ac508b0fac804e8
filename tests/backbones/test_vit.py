"""ViT-Tiny/16 against plain functions of torch on tensors with DeiT's names, and against published sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.backbones.vit_layers import Block
from siesta.codecs.opq import OPQ
from siesta.contracts import Backbone
from siesta.errors import BadInput
from siesta.methods.cost import Flops
from tests.backbones.sizes import millions

NAME = "vit_tiny_16"
D = 192
BLOCKS = 12
HEADS = 3
BLOCK = {
    "norm1": (D,),
    "attn.qkv": (3 * D, D),
    "attn.proj": (D, D),
    "norm2": (D,),
    "mlp.fc1": (4 * D, D),
    "mlp.fc2": (D, 4 * D),
}
Tensors = dict[str, Tensor]


def deit_shapes(tokens: int = 197) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors in DeiT-Tiny's published file, in its order."""
    weights: dict[str, tuple[int, ...]] = {"patch_embed.proj": (D, 3, 16, 16)}
    weights |= {f"blocks.{index}.{part}": shape for index in range(BLOCKS) for part, shape in BLOCK.items()}
    weights |= {"norm": (D,), "head": (1000, D)}
    shapes: dict[str, tuple[int, ...]] = {"cls_token": (1, 1, D), "pos_embed": (1, tokens, D)}
    for name, shape in weights.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


def deit_tensors(tokens: int = 197) -> Tensors:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(shape, generator=generator) * 0.05 + (1.0 if "norm" in name and "weight" in name else 0.0)
        for name, shape in deit_shapes(tokens).items()
    }


def linear(x: Tensor, tensors: Tensors, name: str) -> Tensor:
    return torch.einsum("bnd,od->bno", x, tensors[f"{name}.weight"]) + tensors[f"{name}.bias"]


def norm(x: Tensor, tensors: Tensors, name: str) -> Tensor:
    return F.layer_norm(x, (D,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], eps=1e-6)


def block(x: Tensor, tensors: Tensors, prefix: str) -> Tensor:
    """(B, N, d) -> (B, N, d): one block as its paper writes it, head by head."""
    queries, keys, values = linear(norm(x, tensors, f"{prefix}norm1"), tensors, f"{prefix}attn.qkv").chunk(3, dim=2)
    heads = []
    for head in range(HEADS):
        part = slice(head * D // HEADS, (head + 1) * D // HEADS)
        heads.append(F.scaled_dot_product_attention(queries[..., part], keys[..., part], values[..., part]))
    x = x + linear(torch.cat(heads, dim=2), tensors, f"{prefix}attn.proj")
    hidden = F.gelu(linear(norm(x, tensors, f"{prefix}norm2"), tensors, f"{prefix}mlp.fc1"))
    return x + linear(hidden, tensors, f"{prefix}mlp.fc2")


def embed(images: Tensor, tensors: Tensors) -> Tensor:
    """(B, 3, S, S) -> (B, N, d), patch by patch."""
    weights = tensors["patch_embed.proj.weight"].flatten(1)
    patches = F.unfold(images, 16, stride=16).transpose(1, 2) @ weights.T + tensors["patch_embed.proj.bias"]
    return torch.cat([tensors["cls_token"].expand(len(images), 1, D), patches], dim=1) + tensors["pos_embed"]


def deit(images: Tensor, tensors: Tensors) -> Tensor:
    """(B, 3, S, S) -> z (B, d)."""
    x = embed(images, tensors)
    for index in range(BLOCKS):
        x = block(x, tensors, f"blocks.{index}.")
    return norm(x, tensors, "norm")[:, 0]


def features(backbone: Backbone, images: Tensor) -> Tensor:
    with torch.no_grad():
        z: Tensor = backbone.top(backbone.bottom(images))
    return z


def noise(size: int) -> Tensor:
    return torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(size))


def test_it_has_the_published_number_of_parameters() -> None:
    total, _ = millions(NAME)
    assert round(total * 1e6) + 1000 == 5_717_416, "DeiT-Tiny, whose output layer has a bias"
    assert sum(torch.Size(shape).numel() for shape in deit_shapes().values()) == 5_717_416


def test_a_block_computes_the_formula() -> None:
    layer = Block().eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        x = torch.randn(2, 7, D, generator=torch.Generator().manual_seed(2))
        torch.testing.assert_close(layer(x), block(x, layer.state_dict(), ""), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_file_of_deit_gives_the_network_that_its_paper_describes(wrapped: bool, tmp_path: Path) -> None:
    tensors = deit_tensors()
    torch.save({"model": tensors} if wrapped else tensors, tmp_path / "deit.pth")
    backbone = make_backbone(NAME, weights=tmp_path / "deit.pth")
    assert backbone.ignored == ("head.weight", "head.bias")
    expected = deit(noise(224), tensors)
    assert expected.std() > 0.1
    torch.testing.assert_close(features(backbone, noise(224)), expected, rtol=1e-3, atol=1e-3)


def test_positions_of_a_file_are_interpolated_for_another_image_size(tmp_path: Path) -> None:
    tensors = deit_tensors()
    save_file(tensors, tmp_path / "deit.safetensors")
    small = make_backbone(NAME, weights=tmp_path / "deit.safetensors", image_size=96)
    grid = tensors["pos_embed"][:, 1:].reshape(1, 14, 14, D).permute(0, 3, 1, 2)
    resized = F.interpolate(grid, size=(6, 6), mode="bicubic", align_corners=False).permute(0, 2, 3, 1)
    positions = torch.cat([tensors["pos_embed"][:, :1], resized.reshape(1, 36, D)], dim=1)
    expected = deit(noise(96), tensors | {"pos_embed": positions})
    torch.testing.assert_close(features(small, noise(96)), expected, rtol=1e-3, atol=1e-3)
    large = make_backbone(NAME, weights=tmp_path / "deit.safetensors")
    torch.testing.assert_close(features(large, noise(96)), expected, rtol=1e-3, atol=1e-3)
    save_checkpoint(small, tmp_path / "own.safetensors")
    again = make_backbone(NAME, 4, weights=tmp_path / "own.safetensors", image_size=96)
    assert torch.equal(features(again, noise(96)), features(small, noise(96)))


def test_positions_that_are_no_grid_are_refused(tmp_path: Path) -> None:
    """A distilled DeiT has a second token in front of its patches."""
    save_file(deit_tensors(tokens=198), tmp_path / "distilled.safetensors")
    with pytest.raises(BadInput, match=r"of another shape: pos_embed \(\(1, 198, 192\) for \(1, 37, 192\)\)"):
        make_backbone(NAME, weights=tmp_path / "distilled.safetensors", image_size=96)


def test_flops_count_the_products_of_attention() -> None:
    """The paper of DeiT states 1.3 GFLOPs, that is multiply-adds."""
    backbone = make_backbone(NAME, weights=RANDOM)
    tokens, classes = 197, 1000
    per_block = tokens * (3 + 1 + 4 + 4) * D**2 + 2 * tokens**2 * D
    bottom = 196 * 16 * 16 * 3 * D + 6 * per_block
    codec = OPQ(np.eye(D, dtype=np.float32), np.zeros((8, 256, D // 8), np.float32))
    flops = Flops.measure(backbone, codec, 224, classes)
    assert (flops.bottom, flops.top, flops.head) == (2 * bottom, 2 * 6 * per_block, 2 * D * classes)
    assert (flops.bottom + flops.top + flops.head) / 2e9 == pytest.approx(1.26, abs=0.01)
    assert flops.step == 3 * (flops.top + flops.head), "every product has two gradients of its size"


def test_random_weights_do_not_depend_on_the_image_size() -> None:
    sizes = [make_backbone(NAME, weights=RANDOM, image_size=size) for size in (96, 224)]
    torch.testing.assert_close(*(features(backbone, noise(96)) for backbone in sizes), rtol=1e-4, atol=1e-4)
