"""k-NN accuracy against a plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.data import labelled_files
from siesta.errors import BadInput
from siesta.pretrain.knn import KnnPictures, knn_accuracy, leave_one_out_accuracy
from tests.pretrain.toys import tiny_encoder


def test_accuracy_matches_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    rows = rng.normal(size=(90, 6)) + 1.2 * np.eye(6)[labels]
    centred = rows - rows.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    right = 0
    for own in range(90):
        cosines = [(float(centred[own] @ centred[other]), other) for other in range(90) if other != own]
        votes = np.zeros(3)
        for cosine, other in sorted(cosines, reverse=True)[:7]:
            votes[labels[other]] += np.exp(cosine / 0.07)
        right += int(votes.argmax() == labels[own])
    assert 30 < 100 * right / 90 < 95
    assert leave_one_out_accuracy(torch.from_numpy(rows), torch.from_numpy(labels), 7) == pytest.approx(
        100 * right / 90
    )


def test_the_encoder_is_not_changed(textures: Path) -> None:
    encoder = tiny_encoder().train()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    assert 0 <= knn_accuracy(encoder, KnnPictures(labelled_files(textures), 32)) <= 100
    assert encoder.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())


def test_one_class_is_refused(textures: Path) -> None:
    one = [(file, "same") for file, _ in labelled_files(textures)]
    with pytest.raises(BadInput, match="at least two classes"):
        KnnPictures(one, 32)
