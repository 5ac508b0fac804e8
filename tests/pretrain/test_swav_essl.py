"""Rotated crops of E-SSL and their labels."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from siesta.pretrain.contract import Views
from siesta.pretrain.swav_essl import SwAVESSL, quarter_turns
from tests.pretrain.toys import tiny_encoder, views_for


def test_labels_count_quarter_turns() -> None:
    corner = torch.zeros(2, 3, 4, 4)
    corner[0, :, 0, 0], corner[1, :, 0, 0] = 1, 2  # upper left
    turned, turns = quarter_turns(corner)
    assert turns.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    places = [(0, 0), (3, 0), (3, 3), (0, 3)]  # against the clock
    for index, turn in enumerate(turns.tolist()):
        row, column = places[turn]
        assert turned[index, 0, row, column] == 1 + index % 2
        assert turned[index].sum() == 3 * (1 + index % 2)


def test_the_loss_is_that_of_swav_plus_weighted_rotations() -> None:
    method, views = SwAVESSL(tiny_encoder(), prototypes=6, hidden=8, queue=16, weight=0.4), views_for("swav+essl")
    method.eval()  # batch norms do not move
    whole = method(views, 0.0).loss.item()
    alone = method.swav(Views(views.crops[:-1], views.labels), 0.0).loss.item()
    turned, turns = quarter_turns(views.crops[-1])
    rotation = F.cross_entropy(method.predictor(method.encoder(turned)), turns).item()
    assert whole == pytest.approx(alone + 0.4 * rotation, rel=1e-5)
    assert len(method.crop_specs) == 9
