"""Outputs that grow."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.methods.batch.heads import LinearHead, ProxyHead, reduce_proxies, seeded, weight_ratio


def test_seeded_is_the_same_each_time_and_leaves_the_global_generator() -> None:
    torch.manual_seed(5)
    with seeded(1):
        first = torch.rand(3)
    following = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), following)
    with seeded(1):
        assert torch.equal(torch.rand(3), first)


def test_growing_keeps_old_rows_and_columns() -> None:
    head = LinearHead(3)
    head.grow(2)
    old = head.weight.detach().clone()
    with torch.no_grad():
        head.bias.fill_(0.5)
    head.grow(1, features=2)
    assert head.weight.shape == (3, 5) and len(head) == 3
    assert torch.equal(head.weight[:2, :3], old)
    assert head.bias.tolist() == [0.5, 0.5, 0.0]
    assert bool((head.weight[:, 3:] != 0).all()), "new columns are random"


def test_the_ratio_is_that_of_mean_lengths() -> None:
    weights = np.random.default_rng(0).standard_normal((5, 4))
    lengths = np.sqrt((weights**2).sum(axis=1))
    expected = lengths[:3].mean() / lengths[3:].mean()
    assert weight_ratio(torch.from_numpy(weights), 3) == pytest.approx(expected)


def test_aligned_rows_have_the_mean_length_of_old_ones() -> None:
    head = LinearHead(4, 5)
    old, new = head.weight.detach()[:3].clone(), head.weight.detach()[3:].clone()
    head.align(3)
    lengths = head.weight.detach().norm(dim=1)
    assert torch.equal(head.weight[:3], old)
    assert float(lengths[:3].mean()) == pytest.approx(float(lengths[3:].mean()))
    assert torch.allclose(head.weight[3:] / new, (head.weight[3:] / new).mean()), "one factor for all"


def test_rows_are_set_to_directions() -> None:
    head = LinearHead(2, 2)
    head.set_rows(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), 10.0)
    assert torch.allclose(head.weight, torch.tensor([[6.0, 8.0], [0.0, 10.0]]))


def test_proxies_are_weighted_by_their_softmax() -> None:
    similarities = np.random.default_rng(0).standard_normal((4, 6))
    grouped = similarities.reshape(4, 3, 2)
    shares = np.exp(grouped) / np.exp(grouped).sum(axis=2, keepdims=True)
    assert np.allclose(reduce_proxies(torch.from_numpy(similarities), 2).numpy(), (shares * grouped).sum(axis=2))


def test_proxy_logits_are_scaled_cosines() -> None:
    head = ProxyHead(3, proxies=2, scale=4.0)
    head.grow(2)
    head.grow(1)
    assert len(head) == 3 and head.old.shape == (4, 3) and head.new.shape == (2, 3)
    features = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)
    rows = torch.cat([head.old, head.new]).detach().numpy()
    cosines = (features / np.linalg.norm(features, axis=1, keepdims=True)) @ (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
    ).T
    grouped = cosines.reshape(5, 3, 2)
    shares = np.exp(grouped) / np.exp(grouped).sum(axis=2, keepdims=True)
    assert np.allclose(head(torch.from_numpy(features)).detach().numpy(), 4 * (shares * grouped).sum(axis=2), atol=1e-5)
    assert not head.old.requires_grad and head.new.requires_grad


def test_all_proxies_of_a_class_can_be_set() -> None:
    head = ProxyHead(2, proxies=2, scale=1.0)
    head.grow(2)
    head.set_rows(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), 16.0)
    assert head.new.tolist() == [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    assert head(torch.tensor([[0.0, 1.0]])).tolist()[0][0] == pytest.approx(16.0)
