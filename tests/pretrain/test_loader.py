"""Batches are determined by seed and number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.pretrain import distributed
from siesta.pretrain.contract import Views
from siesta.pretrain.loader import CropLoader
from siesta.pretrain.picture_cache import cache_pictures
from siesta.pretrain.swav import SwAV


@pytest.fixture
def loader(textures: Path, tmp_path: Path) -> CropLoader:
    files = sorted(textures.rglob("*.png"))[:22]
    copies = cache_pictures(files, 32, tmp_path / "copies")
    return CropLoader(copies, np.arange(22), SwAV.crop_specs, 32, batch_size=6, seed=3, workers=3)


def same(first: Views, second: Views) -> bool:
    pairs = zip((*first.crops, first.labels), (*second.crops, second.labels), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def test_an_epoch_has_each_picture_once_without_an_incomplete_batch(loader: CropLoader) -> None:
    assert loader.epoch_steps == 3
    seen = [loader.batch(step).labels.tolist() for step in range(6)]
    for epoch in (seen[:3], seen[3:]):
        flat = [label for batch in epoch for label in batch]
        assert len(flat) == len(set(flat)) == 18
    assert seen[:3] != seen[3:]


def test_prefetched_batches_are_the_same_batches(loader: CropLoader) -> None:
    batches = loader.prefetch(2)
    for step in range(2, 7):
        assert same(next(batches), loader.batch(step))
    batches.close()


def test_the_parts_of_all_ranks_are_the_batch(loader: CropLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = loader.batch(1)
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    pieces = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        pieces.append(loader.batch(1))
    crops = [torch.cat(pair) for pair in zip(*(piece.crops for piece in pieces), strict=True)]
    torch.testing.assert_close(crops, list(whole.crops))
    assert torch.equal(torch.cat([piece.labels for piece in pieces]), whole.labels)


def test_crops_change_with_seed_and_epoch(loader: CropLoader) -> None:
    from dataclasses import replace

    assert not same(loader.batch(0), replace(loader, seed=4).batch(0))
    everything = replace(loader, batch_size=22)
    first, second = (everything.batch(epoch) for epoch in (0, 1))
    order = torch.argsort(first.labels), torch.argsort(second.labels)
    assert not torch.equal(first.crops[0][order[0]], second.crops[0][order[1]])
