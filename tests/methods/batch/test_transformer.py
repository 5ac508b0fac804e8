"""DyTox's transformer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.methods.batch.heads import seeded
from siesta.methods.batch.transformer import (
    PositionalAttention,
    TaskAttention,
    TaskHeads,
    TaskTransformer,
    binary_loss,
    patch_side,
)
from tests.methods.batch.test_distillation import numbers


def transformer(tokens: int = 2) -> TaskTransformer:
    with seeded(0):
        top = TaskTransformer(32, 18, 3, 9)
        for _ in range(tokens):
            top.add_token()
    return top


@pytest.mark.parametrize(("size", "side"), [(32, 4), (64, 8), (112, 8), (224, 16)])
def test_patches_are_those_of_dytox(size: int, side: int) -> None:
    assert patch_side(size) == side


def test_attention_is_a_gate_between_content_and_place() -> None:
    with seeded(0):
        attention = PositionalAttention(18, 9, 3)
    x = torch.randn(2, 9, 18)
    shares = attention.attention(x)
    assert shares.shape == (2, 9, 9, 9) and torch.allclose(shares.sum(dim=3), torch.ones(2, 9, 9), atol=1e-5)
    with torch.no_grad():
        attention.gate.fill_(100.0)
        place = attention.attention(x)
        assert torch.allclose(place[0], place[1]), "does not depend on the image"
        middle = place[0, :, 4].argmax(dim=1)  # where each head looks from the centre of 3 x 3
        assert sorted(middle.tolist()) == list(range(9)), "one neighbour each"
        attention.gate.fill_(-100.0)
        queries, keys = attention.qk(x).chunk(2, dim=2)
        scores = queries[0, :, :2].numpy() @ keys[0, :, :2].numpy().T / np.sqrt(2)
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert np.allclose(attention.attention(x)[0, 0].numpy(), expected, atol=1e-5)


def test_the_first_token_attends_to_all() -> None:
    with seeded(0):
        attention = TaskAttention(4, 1)
    x = torch.randn(1, 5, 4)
    with torch.no_grad():
        queries, keys, values = (layer(x)[0].numpy() for layer in (attention.q, attention.k, attention.v))
        scores = queries[0] @ keys.T / 2
        shares = np.exp(scores) / np.exp(scores).sum()
        expected = attention.proj(torch.from_numpy(shares @ values))
        assert torch.allclose(attention(x)[0, 0], expected, atol=1e-5)


def test_every_step_has_an_embedding_and_a_head_of_its_own() -> None:
    top, heads = transformer(2), TaskHeads(18)
    heads.grow(3)
    heads.grow(2)
    images = torch.randn(4, 3, 32, 32)
    embedded = top(images)
    assert embedded.shape == (4, 2, 18) and heads(embedded).shape == (4, 5) and len(heads) == 5
    assert torch.equal(heads(embedded)[:, 3:], heads.heads[1](embedded[:, 1]))
    top.add_token()
    assert torch.equal(top(images)[:, :2], embedded), "a new token changes nothing for old ones"


def test_the_published_size() -> None:
    with seeded(0):
        top = TaskTransformer(224, 384, 6, 12)
    for _ in range(10):
        top.add_token()
    heads = TaskHeads(384)
    for _ in range(10):
        heads.grow(100)
    total = sum(parameter.numel() for part in (top, heads) for parameter in part.parameters())
    assert total / 1e6 == pytest.approx(11.36, rel=0.01)


def test_binary_loss() -> None:
    logits, rows = numbers(3, 4), np.array([0, 3, 1])
    shares = 1 / (1 + np.exp(-logits))
    own = np.eye(4)[rows]
    expected = -(own * np.log(shares) + (1 - own) * np.log(1 - shares)).mean()
    assert float(binary_loss(torch.from_numpy(logits), torch.from_numpy(rows))) == pytest.approx(expected)
