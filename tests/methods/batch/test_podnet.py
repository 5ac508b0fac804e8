"""PODNet against NumPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from siesta.methods.batch.podnet import nca_loss, pod_flat, pod_spatial
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.batch.test_distillation import numbers
from tests.methods.conftest import Template


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_maps_are_pooled_over_width_and_over_height() -> None:
    new, old = ([numbers(2, 3, 4, 5, seed=seed), numbers(2, 6, 2, 2, seed=seed + 1)] for seed in (0, 5))
    distances = []
    for a, b in zip(new, old, strict=True):
        pooled = []
        for maps in (a, b):
            squares = maps**2
            width, height = squares.sum(axis=3).reshape(2, -1), squares.sum(axis=2).reshape(2, -1)
            pooled.append(unit(np.concatenate([width, height], axis=1)))
        distances.append(np.linalg.norm(pooled[0] - pooled[1], axis=1).mean())
    found = pod_spatial([torch.from_numpy(maps) for maps in new], [torch.from_numpy(maps) for maps in old])
    assert float(found) == pytest.approx(np.mean(distances))


def test_features_are_compared_by_their_cosine() -> None:
    new, old = numbers(4, 3), numbers(4, 3, seed=1)
    expected = (1 - (unit(new) * unit(old)).sum(axis=1)).mean()
    assert float(pod_flat(torch.from_numpy(new), torch.from_numpy(old))) == pytest.approx(expected)


def test_nca_compares_the_own_class_with_all_others() -> None:
    similarities, rows, scale = numbers(6, 4), np.array([0, 1, 2, 3, 0, 1]), 1.5
    losses = []
    for row, values in zip(rows, similarities, strict=True):
        others = np.delete(values, row)
        losses.append(max(-np.log(np.exp(values[row] - scale * 0.6) / np.exp(others).sum()), 0))
    assert 0 in losses and max(losses) > 0, "the hinge is used"
    found = nca_loss(torch.from_numpy(similarities), torch.from_numpy(rows), scale)
    assert float(found) == pytest.approx(np.mean(losses))


def test_old_proxies_stay_and_copies_have_no_maps(templates: dict[str, Template]) -> None:
    method = make(templates, "podnet", proxies=3, lr=0.05)
    step(templates, method, FIRST)
    head = method.network.output
    assert head.new.shape == (6, 16) and head.old.shape == (0, 16)
    learned = head.new.detach().clone()
    assert copy.deepcopy(method.network.top).maps == []
    step(templates, method, SECOND)
    head = method.network.output
    assert torch.equal(head.old, learned) and head.new.shape == (6, 16)


def test_features_are_not_rectified(templates: dict[str, Template]) -> None:
    method = make(templates, "podnet")
    step(templates, method, FIRST)
    assert (method.embed(method.exemplars.ids()) < 0).any()
