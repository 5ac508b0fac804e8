"""ER: pictures, the whole network, a fixed rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from siesta.methods import ER
from siesta.methods.er import ERSettings
from tests.methods.conftest import Start, pictures
from tests.methods.steps import record, unevenness


def make(folder: Path, **settings: Any) -> ER:
    return ER(folder, ERSettings(**{"rate": 0.002, **settings}), 0)


def test_a_step_has_the_new_picture_and_distinct_old_ones(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record(monkeypatch)
    classes = [0, 1, 0, 2, 1, 1, 0]
    codes, labels = starts["raw"].lesson(classes)
    method = make(starts["raw"].folder(), rehearsals=3, layer_decay=1.0)
    method.learn_many(codes, labels)
    scaled = torch.from_numpy((pictures(classes).astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
    for number, step in enumerate(steps):
        found = [int(torch.nonzero((scaled - one).abs().amax(dim=(1, 2, 3)) < 1e-6)) for one in step.latents]
        assert found[0] == number and len(set(found)) == len(found) == 1 + min(3, number) and max(found) == number
        assert step.rows == step.others == [classes[index] for index in found]
        assert step.rates == [0.002] * len(step.rates)
    resources = method.resources()
    assert resources.updates == 1 + 2 + 3 + 4 * 4
    assert resources.bytes["images"] == 7 * 3 * 32 * 32 and resources.bytes["codes"] == 0


def test_old_pictures_are_drawn_uniformly(starts: dict[str, Start]) -> None:
    codes, labels = starts["raw"].lesson([0] * 5 + [1] * 3 + [2] * 2)
    method = make(starts["raw"].folder((codes, labels)), rehearsals=4)
    known = method.decode(codes)
    drawn: list[int] = []
    for draw in range(300):
        batch = method.batch(codes[:1], 0, np.random.default_rng(draw))
        drawn += [int(torch.nonzero((known == one).all(dim=(1, 2, 3)))[0, 0]) for one in batch.latents[1:]]
    counts = np.bincount(drawn, minlength=10)
    assert counts.sum() == 1200 and unevenness(counts) < 21.7  # the 99 % quantile of chi-square with 9 degrees


def test_the_whole_network_learns(starts: dict[str, Start]) -> None:
    method = make(starts["raw"].folder(), rehearsals=2)
    before = {name: some.clone() for name, some in method._network.top_state().items()}
    method.learn_many(*starts["raw"].lesson([0, 1, 0]))
    after = method._network.top_state()
    assert method._home.pipeline.backbone.cut == 0
    first = next(iter(before))
    assert not torch.equal(before[first], after[first])
    for name in before:
        if "running" in name or "centre" in name:
            assert torch.equal(before[name], after[name])


def test_augmentation_crops_and_flips_every_picture(starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []

    def crop(samples: Tensor, _rng: np.random.Generator, smallest: float) -> Tensor:
        calls.append((f"crop {smallest}", len(samples)))
        return samples

    def flip(samples: Tensor, _rng: np.random.Generator) -> Tensor:
        calls.append(("flip", len(samples)))
        return samples

    monkeypatch.setattr("siesta.methods.er.random_crop", crop)
    monkeypatch.setattr("siesta.methods.er.random_flip", flip)
    base = starts["raw"].lesson([0, 1, 0])
    make(starts["raw"].folder(base), rehearsals=2).learn_many(*starts["raw"].lesson([1]))
    assert calls == []
    make(starts["raw"].folder(base), rehearsals=2, augment=True).learn_many(*starts["raw"].lesson([1]))
    assert calls == [("crop 0.08", 3), ("flip", 3)]


@pytest.mark.parametrize("augment", [False, True])
def test_it_learns_class_after_class(starts: dict[str, Start], augment: bool) -> None:
    some = starts["raw"]
    method = make(some.folder(), rehearsals=6, augment=augment)
    method.learn_many(*some.lesson([number for number in range(3) for _ in range(10)]))
    asked, labels = some.lesson([0, 1, 2] * 6, 5)
    right = [answer[0] == label for answer, label in zip(method.predict_many(asked), labels, strict=True)]
    assert np.mean(right) > 0.8
