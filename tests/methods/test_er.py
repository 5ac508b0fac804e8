"""ER rehearses images and trains the whole network at a fixed learning rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from siesta.methods.er import ER, ERSettings
from tests.methods.conftest import Template, images
from tests.methods.steps import chi_square, record_steps


def make(folder: Path, **settings: Any) -> ER:
    return ER(folder, ERSettings(**{"lr": 0.002, **settings}), 0)


def test_a_step_has_the_new_image_and_distinct_stored_ones(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record_steps(monkeypatch)
    classes = [0, 1, 0, 2, 1, 1, 0]
    codes, labels = templates["raw"].samples(classes)
    method = make(templates["raw"].folder(), rehearsals=3, layer_decay=1.0)
    method.learn_many(codes, labels)
    scaled = torch.from_numpy((images(classes).astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
    for number, step in enumerate(steps):
        used = [int(torch.nonzero((scaled - image).abs().amax(dim=(1, 2, 3)) < 1e-6)) for image in step.latents]
        assert used[0] == number == max(used)
        assert len(set(used)) == len(used) == 1 + min(3, number)
        assert step.rows == step.second_rows == [classes[index] for index in used]
        assert step.rates == [0.002] * len(step.rates)
    resources = method.resources()
    assert resources.updates == 1 + 2 + 3 + 4 * 4
    assert resources.bytes["images"] == 7 * 3 * 32 * 32 and resources.bytes["codes"] == 0


def test_stored_images_are_drawn_uniformly(templates: dict[str, Template]) -> None:
    codes, labels = templates["raw"].samples([0] * 5 + [1] * 3 + [2] * 2)
    method = make(templates["raw"].folder((codes, labels)), rehearsals=4)
    stored = method.decode(codes)
    drawn: list[int] = []
    for draw in range(300):
        batch = method.batch(codes[:1], 0, np.random.default_rng(draw))
        drawn += [int(torch.nonzero((stored == image).all(dim=(1, 2, 3)))[0, 0]) for image in batch.latents[1:]]
    counts = np.bincount(drawn, minlength=10)
    assert counts.sum() == 1200 and chi_square(counts) < 21.7  # the 99 % quantile of chi-square with 9 degrees


def test_the_whole_network_is_trained(templates: dict[str, Template]) -> None:
    method = make(templates["raw"].folder(), rehearsals=2)
    before = {name: tensor.clone() for name, tensor in method.state().items() if name.startswith("top.")}
    method.learn_many(*templates["raw"].samples([0, 1, 0]))
    after = method.state()
    assert method.workspace.pipeline.backbone.cut == 0
    lowest = next(iter(before))
    assert not torch.equal(before[lowest], after[lowest])
    for name in before:
        if "running" in name or "centre" in name:
            assert torch.equal(before[name], after[name])


def test_augmentation_crops_and_flips_every_image(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []

    def crop(samples: Tensor, _rng: np.random.Generator, min_area: float) -> Tensor:
        calls.append((f"crop {min_area}", len(samples)))
        return samples

    def flip(samples: Tensor, _rng: np.random.Generator) -> Tensor:
        calls.append(("flip", len(samples)))
        return samples

    monkeypatch.setattr("siesta.methods.er.random_crop", crop)
    monkeypatch.setattr("siesta.methods.er.random_flip", flip)
    base = templates["raw"].samples([0, 1, 0])
    make(templates["raw"].folder(base), rehearsals=2).learn_many(*templates["raw"].samples([1]))
    assert calls == []
    make(templates["raw"].folder(base), rehearsals=2, augment=True).learn_many(*templates["raw"].samples([1]))
    assert calls == [("crop 0.08", 3), ("flip", 3)]


@pytest.mark.parametrize("augment", [False, True])
def test_old_classes_are_remembered(templates: dict[str, Template], augment: bool) -> None:
    template = templates["raw"]
    method = make(template.folder(), rehearsals=6, augment=augment)
    method.learn_many(*template.samples([number for number in range(3) for _ in range(10)]))
    queries, labels = template.samples([0, 1, 2] * 6, 5)
    right = [answer[0] == label for answer, label in zip(method.predict_many(queries), labels, strict=True)]
    assert np.mean(right) > 0.8
