"""Supervised training against a cross-entropy in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.pretrain.supervised import Supervised
from tests.pretrain.toys import FEATURES, tiny_encoder, views_for


def test_the_loss_matches_numpy() -> None:
    method, views = Supervised(tiny_encoder(), classes=3).eval(), views_for("supervised")
    with torch.no_grad():
        z = method.encoder(views.crops[0]).double().numpy()
    weight, bias = (parameter.detach().double().numpy() for parameter in (method.output.weight, method.output.bias))
    logits = z @ weight.T + bias
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -logs[np.arange(len(logs)), views.labels.numpy()].mean()
    output = method(views, 0.0)
    assert output.loss.item() == pytest.approx(expected, rel=1e-4)
    assert output.embedding is None, "the network may well give all pictures of a class one embedding"


def test_there_is_an_output_for_each_class() -> None:
    assert tuple(Supervised(tiny_encoder(), classes=5).output.weight.shape) == (5, FEATURES)


def test_crops_keep_their_colours() -> None:
    (spec,) = Supervised.crop_specs
    assert spec.colours is None and Supervised.needs_labels
