"""REMIND: the batch and the learning rate of a step, augmentation, and that old classes are remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from siesta.contracts import Codes
from siesta.errors import BadInput
from siesta.methods.cost import Flops
from siesta.methods.remind import Remind, RemindSettings, decayed_lr
from siesta.sleep.batch import Batch
from tests.methods.conftest import Template
from tests.methods.steps import chi_square, record_steps


def make(folder: Path, seed: int = 0, **settings: Any) -> Remind:
    return Remind(folder, RemindSettings(**{"lr": 0.002, "final_lr": None, **settings}), seed)


def sources(latents: Tensor, codes: Codes, method: Remind) -> list[int]:
    """Return the index of the code that each latent was decoded from."""
    known = method.decode(codes)
    return [int(torch.nonzero((known == latent).all(dim=(1, 2, 3)))[0, 0]) for latent in latents]


def test_a_step_has_the_new_sample_and_distinct_stored_ones(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record_steps(monkeypatch)
    codes, labels = templates["opq"].samples([0, 1, 0, 2, 1, 1, 0, 2, 3])
    method = make(templates["opq"].folder(), rehearsals=4)
    method.learn_many(codes, labels)
    rows = {"class 0": 0, "class 1": 1, "class 2": 2, "class 3": 3}
    assert len(steps) == len(codes)
    for number, step in enumerate(steps):
        new, *rehearsed = sources(step.latents, codes, method)
        assert new == number
        assert len(rehearsed) == len(set(rehearsed)) == min(4, number) and max(rehearsed, default=-1) < number
        assert step.rows == step.second_rows == [rows[labels[index]] for index in (new, *rehearsed)]
    assert method.resources().updates == sum(1 + min(4, number) for number in range(9))
    assert {number for step in steps[5:] for number in sources(step.latents[1:], codes, method)} > {0, 1, 2}


def test_stored_samples_are_drawn_uniformly(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    codes, labels = template.samples([0] * 8 + [1] * 3 + [2])  # uniform over samples, not over classes
    method = make(template.folder((codes, labels)), rehearsals=3)
    new, _ = template.samples([3], 1)
    drawn: list[int] = []
    for draw in range(400):
        batch = method.batch(new, 3, np.random.default_rng(draw))
        drawn += sources(batch.latents[1:], codes, method)
        assert len(set(drawn[-3:])) == 3
    counts = np.bincount(drawn, minlength=12)
    assert counts.sum() == 1200 and chi_square(counts) < 24.7  # the 99 % quantile of chi-square with 11 degrees


def test_flops_are_those_of_the_network_with_so_many_classes(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), rehearsals=2)
    method.learn_many(*templates["opq"].samples([0, 1, 2, 1]))
    pipeline = method.workspace.pipeline
    expected = 0.0
    for classes, batch in ((1, 1), (2, 2), (3, 3), (3, 3)):
        cost = Flops.measure(pipeline.backbone, pipeline.codec, pipeline.image_size, classes)
        expected += cost.bottom + cost.encode + cost.decode + cost.top + batch * (cost.decode + cost.step)
    assert method.resources().flops["wake"] == pytest.approx(expected, rel=1e-12)


def test_each_class_has_its_own_learning_rate_and_a_new_one_starts_high(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record_steps(monkeypatch)
    settings: dict[str, Any] = {"lr": 0.1, "final_lr": 0.001, "step": 2, "decay_over": 4, "layer_decay": 0.5}
    method = make(templates["opq"].folder(), rehearsals=1, **settings)
    method.learn_many(*templates["opq"].samples([0, 0, 0, 0, 0, 0, 1, 0, 1, 1]))
    expected = [0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.1, 0.001, 0.1, 0.01]
    assert [step.rates[0] for step in steps] == pytest.approx(expected)
    for step in steps:  # temperature, class vectors, then layer by layer
        assert np.divide(step.rates[1:], step.rates[:-1]) == pytest.approx([1.0] + [0.5] * (len(step.rates) - 2))


def test_base_samples_count_for_the_learning_rate(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = templates["opq"].folder(templates["opq"].samples([0, 0, 1]))
    steps = record_steps(monkeypatch)
    method = make(folder, rehearsals=1, lr=0.1, final_lr=0.001, step=1, decay_over=4)
    method.learn_many(*templates["opq"].samples([0, 1, 2]))
    assert [step.rates[0] for step in steps] == pytest.approx([0.1 * 0.01 ** (2 / 4), 0.1 * 0.01 ** (1 / 4), 0.1])


@given(st.floats(1e-4, 1), st.floats(1e-6, 1), st.integers(1, 200), st.integers(1, 2000), st.integers(0, 5000))
def test_decay_is_that_of_a_step_schedule(lr: float, share: float, step: int, over: int, count: int) -> None:
    settings = RemindSettings(lr=lr, final_lr=lr * share, step=step, decay_over=over)
    gamma = np.exp(step * np.log(share) / over)  # as published
    assert decayed_lr(settings, count) == pytest.approx(max(lr * gamma ** (count // step), lr * share))
    assert decayed_lr(RemindSettings(lr=lr, final_lr=None), count) == lr


def test_augmented_steps_mix_stored_samples_but_not_the_new_one(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.remind.random_crop", lambda latents, _rng, _min_area: latents)
    codes, labels = templates["opq"].samples([0, 1, 2, 1, 0, 2, 1, 0])
    method = make(templates["opq"].folder((codes, labels)), rehearsals=3, augment=True)
    new, _ = templates["opq"].samples([3], 1)
    latents, rows = method.decode(codes), [int(label[-1]) for label in labels]
    for seed in range(20):
        batch = method.batch(new, 3, np.random.default_rng(seed))
        assert torch.equal(batch.latents[:1], method.decode(new)) and batch.rows[0] == batch.second_rows[0] == 3
        pairs_used = []
        for mixed, row, other in zip(batch.latents[1:], batch.rows[1:], batch.second_rows[1:], strict=True):
            pairs = [
                (first, second)
                for first in range(8)
                for second in range(8)
                if rows[first] == row and rows[second] == other
                if torch.allclose(batch.share * latents[first] + (1 - batch.share) * latents[second], mixed)
            ]
            pairs_used += pairs[:1]
        assert len(pairs_used) == 3
        if 0.1 < batch.share < 0.9:
            assert len({number for pair in pairs_used for number in pair}) == 6


@pytest.mark.parametrize(("stored", "rehearsed"), [(0, 0), (1, 1), (2, 2), (3, 3), (5, 3)])
def test_few_stored_samples_make_a_small_augmented_step(
    templates: dict[str, Template], stored: int, rehearsed: int
) -> None:
    method = make(templates["opq"].folder(), rehearsals=3, augment=True)
    codes, labels = templates["opq"].samples([0, 1, 0, 1, 0])
    method.learn_many(codes[:stored], labels[:stored])
    batch = method.batch(templates["opq"].samples([2])[0], 2, np.random.default_rng(0))
    assert isinstance(batch, Batch) and len(batch.rows) == len(batch.second_rows) == len(batch.latents) == 1 + rehearsed


def test_every_latent_is_cropped(templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch) -> None:
    cropped: list[tuple[int, float]] = []

    def crop(latents: Tensor, _rng: np.random.Generator, min_area: float) -> Tensor:
        cropped.append((len(latents), min_area))
        return latents

    monkeypatch.setattr("siesta.methods.remind.random_crop", crop)
    method = make(templates["opq"].folder(templates["opq"].samples([0, 1] * 4)), rehearsals=3, augment=True)
    method.learn_many(*templates["opq"].samples([2]))
    assert cropped == [(7, 2 / 7)]


@pytest.mark.parametrize("augment", [False, True])
def test_old_classes_are_remembered(templates: dict[str, Template], augment: bool) -> None:
    template = templates["opq"]
    method = make(template.folder(), rehearsals=6, augment=augment)
    method.learn_many(*template.samples([number for number in range(3) for _ in range(10)]))
    queries, labels = template.samples([0, 1, 2] * 6, 5)
    right = [answer[0] == label for answer, label in zip(method.predict_many(queries), labels, strict=True)]
    assert np.mean(right) > 0.8


def test_a_full_buffer_evicts_from_the_largest_class(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), rehearsals=1)
    store = method.workspace.store
    store.budget.capacity = 4
    method.learn_many(*templates["opq"].samples([0, 0, 0, 0, 1, 2]))
    assert [(record.label, record.stored) for record in store.classes.all()] == [
        ("class 0", 2), ("class 1", 1), ("class 2", 1)
    ]  # fmt: skip
    assert method.resources().bytes["codes"] == 4 * store.code_bytes


def test_a_learning_rate_that_is_too_high_is_refused(templates: dict[str, Template]) -> None:
    method = make(templates["opq"].folder(), rehearsals=2, lr=1e30)
    with pytest.raises(BadInput, match="diverged at a learning rate of 1e"):
        method.learn_many(*templates["opq"].samples([0, 1, 0, 1, 0, 1]))
