"""Batches hang on their number alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.pretrain import ranks
from siesta.pretrain.contract import Views
from siesta.pretrain.loader import Loader
from siesta.pretrain.pictures import copied
from siesta.pretrain.swav import SwAV


@pytest.fixture
def loader(textures: Path, tmp_path: Path) -> Loader:
    files = sorted(textures.rglob("*.png"))[:22]
    copies = copied(files, 32, tmp_path / "copies")
    return Loader(copies, np.arange(22), SwAV.plan, 32, batch_size=6, seed=3, workers=3)


def same(first: Views, second: Views) -> bool:
    pairs = zip((*first.crops, first.labels), (*second.crops, second.labels), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def test_an_epoch_shows_each_picture_once_and_leaves_a_rest(loader: Loader) -> None:
    assert loader.epoch_steps == 3
    seen = [loader.views(step).labels.tolist() for step in range(6)]
    for epoch in (seen[:3], seen[3:]):
        flat = [label for batch in epoch for label in batch]
        assert len(flat) == len(set(flat)) == 18
    assert seen[:3] != seen[3:]


def test_what_comes_ahead_is_what_is_asked_for(loader: Loader) -> None:
    batches = loader.ahead(2)
    for step in range(2, 7):
        assert same(next(batches), loader.views(step))
    batches.close()


def test_pieces_of_ranks_are_the_batch(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = loader.views(1)
    monkeypatch.setattr(ranks, "count", lambda: 2)
    pieces = []
    for rank in (0, 1):
        monkeypatch.setattr(ranks, "rank", lambda rank=rank: rank)
        pieces.append(loader.views(1))
    crops = [torch.cat(pair) for pair in zip(*(piece.crops for piece in pieces), strict=True)]
    torch.testing.assert_close(crops, list(whole.crops))
    assert torch.equal(torch.cat([piece.labels for piece in pieces]), whole.labels)


def test_crops_change_with_seed_and_epoch(loader: Loader) -> None:
    from dataclasses import replace

    assert not same(loader.views(0), replace(loader, seed=4).views(0))
    everything = replace(loader, batch_size=22)
    first, second = (everything.views(epoch) for epoch in (0, 1))
    order = torch.argsort(first.labels), torch.argsort(second.labels)
    assert not torch.equal(first.crops[0][order[0]], second.crops[0][order[1]])
