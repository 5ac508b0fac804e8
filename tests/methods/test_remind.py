"""REMIND: what a step is made of, its rates, and that it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from siesta.batch import Batch
from siesta.contracts import Codes
from siesta.errors import BadInput
from siesta.methods import Remind
from siesta.methods.remind import RemindSettings, decayed
from siesta.resources import Flops
from tests.methods.conftest import Start
from tests.methods.steps import record, unevenness


def make(folder: Path, seed: int = 0, **settings: Any) -> Remind:
    return Remind(folder, RemindSettings(**{"rate": 0.002, "final_rate": None, **settings}), seed)


def whose(latents: Tensor, codes: Codes, method: Remind) -> list[int]:
    """Which of some codes each latent was decoded from."""
    known = method.decode(codes)
    return [int(torch.nonzero((known == latent).all(dim=(1, 2, 3)))[0, 0]) for latent in latents]


def test_a_step_has_the_new_sample_and_distinct_old_ones(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record(monkeypatch)
    codes, labels = starts["opq"].lesson([0, 1, 0, 2, 1, 1, 0, 2, 3])
    method = make(starts["opq"].folder(), rehearsals=4)
    method.learn_many(codes, labels)
    rows = {"class 0": 0, "class 1": 1, "class 2": 2, "class 3": 3}
    assert len(steps) == len(codes)
    for number, step in enumerate(steps):
        first, *old = whose(step.latents, codes, method)
        assert first == number
        assert len(old) == len(set(old)) == min(4, number) and all(other < number for other in old)
        assert step.rows == step.others == [rows[labels[index]] for index in (first, *old)]
    assert method.resources().updates == sum(1 + min(4, number) for number in range(9))
    assert {number for step in steps[5:] for number in whose(step.latents[1:], codes, method)} > {0, 1, 2}


def test_old_samples_are_drawn_uniformly(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    codes, labels = some.lesson([0] * 8 + [1] * 3 + [2])  # a large class and small ones: samples count, not classes
    method = make(some.folder((codes, labels)), rehearsals=3)
    new, _ = some.lesson([3], 1)
    drawn: list[int] = []
    for draw in range(400):
        batch = method.batch(new, 3, np.random.default_rng(draw))
        drawn += whose(batch.latents[1:], codes, method)
        assert len(set(drawn[-3:])) == 3
    counts = np.bincount(drawn, minlength=12)
    assert counts.sum() == 1200 and unevenness(counts) < 24.7  # the 99 % quantile of chi-square with 11 degrees


def test_flops_are_those_of_the_network_with_so_many_classes(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), rehearsals=2)
    method.learn_many(*starts["opq"].lesson([0, 1, 2, 1]))
    pipeline = method._home.pipeline
    expected = 0.0
    for classes, batch in ((1, 1), (2, 2), (3, 3), (3, 3)):
        cost = Flops.measure(pipeline.backbone, pipeline.codec, pipeline.image_size, classes)
        expected += cost.bottom + cost.encode + cost.decode + cost.top + batch * (cost.decode + cost.step)
    assert method.resources().flops["wake"] == pytest.approx(expected, rel=1e-12)


def test_a_class_has_its_own_rate_and_a_new_one_starts_high(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record(monkeypatch)
    settings: dict[str, Any] = {"rate": 0.1, "final_rate": 0.001, "step": 2, "decay_over": 4, "layer_decay": 0.5}
    method = make(starts["opq"].folder(), rehearsals=1, **settings)
    method.learn_many(*starts["opq"].lesson([0, 0, 0, 0, 0, 0, 1, 0, 1, 1]))
    expected = [0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.1, 0.001, 0.1, 0.01]
    assert [step.rates[0] for step in steps] == pytest.approx(expected)
    for step in steps:  # temperature and rows alike, then layer by layer
        assert np.divide(step.rates[1:], step.rates[:-1]) == pytest.approx([1.0] + [0.5] * (len(step.rates) - 2))


def test_samples_of_the_base_count_for_the_rate(starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = starts["opq"].folder(starts["opq"].lesson([0, 0, 1]))
    steps = record(monkeypatch)
    method = make(folder, rehearsals=1, rate=0.1, final_rate=0.001, step=1, decay_over=4)
    method.learn_many(*starts["opq"].lesson([0, 1, 2]))
    assert [step.rates[0] for step in steps] == pytest.approx([0.1 * 0.01 ** (2 / 4), 0.1 * 0.01 ** (1 / 4), 0.1])


@given(st.floats(1e-4, 1), st.floats(1e-6, 1), st.integers(1, 200), st.integers(1, 2000), st.integers(0, 5000))
def test_decay_is_that_of_a_step_schedule(rate: float, share: float, step: int, over: int, taught: int) -> None:
    settings = RemindSettings(rate=rate, final_rate=rate * share, step=step, decay_over=over)
    gamma = np.exp(step * np.log(share) / over)  # the published one
    assert decayed(settings, taught) == pytest.approx(max(rate * gamma ** (taught // step), rate * share))
    assert decayed(RemindSettings(rate=rate, final_rate=None), taught) == rate


def test_augmented_steps_mix_old_samples_and_leave_the_new_one_pure(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.methods.remind.random_crop", lambda latents, _rng, _smallest: latents)
    codes, labels = starts["opq"].lesson([0, 1, 2, 1, 0, 2, 1, 0])
    method = make(starts["opq"].folder((codes, labels)), rehearsals=3, augment=True)
    new, _ = starts["opq"].lesson([3], 1)
    latents, rows = method.decode(codes), [int(label[-1]) for label in labels]
    for seed in range(20):
        batch = method.batch(new, 3, np.random.default_rng(seed))
        assert torch.equal(batch.latents[:1], method.decode(new)) and batch.rows[0] == batch.others[0] == 3
        used = []
        for mixed, row, other in zip(batch.latents[1:], batch.rows[1:], batch.others[1:], strict=True):
            pairs = [
                (first, second)
                for first in range(8)
                for second in range(8)
                if rows[first] == row and rows[second] == other
                if torch.allclose(batch.share * latents[first] + (1 - batch.share) * latents[second], mixed)
            ]
            used += pairs[:1]
        assert len(used) == 3
        if 0.1 < batch.share < 0.9:
            assert len({number for pair in used for number in pair}) == 6


@pytest.mark.parametrize(("stored", "rehearsed"), [(0, 0), (1, 1), (2, 2), (3, 3), (5, 3)])
def test_few_stored_samples_make_a_small_augmented_step(starts: dict[str, Start], stored: int, rehearsed: int) -> None:
    method = make(starts["opq"].folder(), rehearsals=3, augment=True)
    codes, labels = starts["opq"].lesson([0, 1, 0, 1, 0])
    method.learn_many(codes[:stored], labels[:stored])
    batch = method.batch(starts["opq"].lesson([2])[0], 2, np.random.default_rng(0))
    assert isinstance(batch, Batch) and len(batch.rows) == len(batch.others) == len(batch.latents) == 1 + rehearsed


def test_crops_are_made_of_every_latent(starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, float]] = []

    def crop(latents: Tensor, _rng: np.random.Generator, smallest: float) -> Tensor:
        seen.append((len(latents), smallest))
        return latents

    monkeypatch.setattr("siesta.methods.remind.random_crop", crop)
    method = make(starts["opq"].folder(starts["opq"].lesson([0, 1] * 4)), rehearsals=3, augment=True)
    method.learn_many(*starts["opq"].lesson([2]))
    assert seen == [(7, 2 / 7)]


@pytest.mark.parametrize("augment", [False, True])
def test_it_learns_class_after_class(starts: dict[str, Start], augment: bool) -> None:
    some = starts["opq"]
    method = make(some.folder(), rehearsals=6, augment=augment)
    method.learn_many(*some.lesson([number for number in range(3) for _ in range(10)]))
    asked, labels = some.lesson([0, 1, 2] * 6, 5)
    right = [answer[0] == label for answer, label in zip(method.predict_many(asked), labels, strict=True)]
    assert np.mean(right) > 0.8


def test_a_full_buffer_drops_from_the_largest_class(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), rehearsals=1)
    store = method._home.store
    store.capacity = 4
    method.learn_many(*starts["opq"].lesson([0, 0, 0, 0, 1, 2]))
    assert [(record.label, record.stored) for record in store.classes()] == [
        ("class 0", 2), ("class 1", 1), ("class 2", 1)
    ]  # fmt: skip
    assert method.resources().bytes["codes"] == 4 * store.code_bytes


def test_a_rate_that_is_too_high_is_named(starts: dict[str, Start]) -> None:
    method = make(starts["opq"].folder(), rehearsals=2, rate=1e30)
    with pytest.raises(BadInput, match="diverged at a rate of 1e"):
        method.learn_many(*starts["opq"].lesson([0, 1, 0, 1, 0, 1]))
