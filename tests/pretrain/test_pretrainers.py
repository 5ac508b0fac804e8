"""Conformance: what every pre-training method must do."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from siesta.backbones import make_backbone
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loop import PretrainStatus
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings
from tests.pretrain.toys import TINY, draw_textures, make, quick_settings, supported_options, views_for

NAMES = list(PRETRAINERS)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_trained_or_frozen_on_purpose(name: str) -> None:
    method = make(name)
    method.train()
    every = [weights for part in method.param_groups() for weights in part.parameters]
    learning = {id(weights) for weights in method.parameters() if weights.requires_grad}
    assert len(every) == len({id(weights) for weights in every}) and {id(weights) for weights in every} == learning
    optimizer = make_optimizer(method.param_groups(), method.recipe)
    before = {label: weights.detach().clone() for label, weights in method.named_parameters()}
    for step in range(2):  # the first has nothing to compare with in a queue
        outcome = method(views_for(name, seed=step), 0.45)
        assert outcome.loss.shape == () and bool(outcome.loss.isfinite())
        assert (outcome.embedding is None) == method.needs_labels
        assert method.needs_labels or (len(outcome.embedding) == 8 and not outcome.embedding.requires_grad)
        if outcome.assignments is not None:
            torch.testing.assert_close(outcome.assignments.sum(dim=1), torch.ones(8))
        optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()
        optimizer.prepare(0.1, 0.45)
        optimizer.step()
    still = {label for label, weights in method.named_parameters() if torch.equal(weights, before[label])}
    bound = {label for label, weights in method.named_parameters() if not weights.requires_grad}
    assert {label for label in still if "slow" not in label} == {label for label in bound if "slow" not in label}


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupted_run_is_resumed_to_the_same_weights(name: str, textures: Path, tmp_path: Path) -> None:
    settings = quick_settings(name, epochs=3, seed=5)
    whole = pretrain(settings, textures, tmp_path / "whole.safetensors", labelled=textures)
    assert whole.status == "trained" and whole.pictures == 144 and whole.epochs == 3
    assert [epoch.epoch for epoch in whole.history] == [0, 1, 2, 3]

    def stop(status: PretrainStatus) -> None:
        if status.pictures in (16 * 2, 16 * 6):  # inside an epoch, and at the end of one
            os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "parts.safetensors"
    parts = [pretrain(settings, textures, out, labelled=textures, on_step=stop) for _ in range(3)]
    assert [part.status for part in parts] == ["interrupted", "interrupted", "trained"]
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert parts[-1].history == whole.history
    assert not (tmp_path / "parts.safetensors.part").exists()
    assert pretrain(settings, textures, out).status == "known"


@pytest.mark.parametrize("name", NAMES)
def test_the_trained_weights_are_written_with_a_record(name: str, textures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    found = pretrain(quick_settings(name), textures, out)
    fresh, trained = (make_backbone(TINY, 0, weights=weights) for weights in ("random", out))
    pairs = zip(fresh.top.named_parameters(), trained.top.parameters(), strict=True)
    assert not any(torch.equal(old, new) for (_, old), new in pairs)
    assert trained.ignored == ()
    facts = json.loads((tmp_path / "out.safetensors.json").read_text("utf-8"))
    assert facts["settings"]["method"] == name and facts["pictures"] == found.pictures == 48
    assert {"date", "commit", "machine", "data"} <= set(facts) and facts["settings"]["rate"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_run_by_time_ends_after_its_seconds(name: str, textures: Path, tmp_path: Path) -> None:
    found = pretrain(quick_settings(name, epochs=None, seconds=0.05), textures, tmp_path / "out.safetensors")
    assert found.status == "trained" and found.seconds >= 0.05 and found.pictures < 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_loss_falls_and_knn_accuracy_rises(name: str, tmp_path: Path) -> None:
    textures, teacher = draw_textures(tmp_path / "many", classes=5, each=60), tmp_path / "teacher.safetensors"
    if name == "seed":
        pretrain(_learning("supervised"), textures, teacher)
    found = pretrain(_learning(name, teacher), textures, tmp_path / "out.safetensors", labelled=textures, knn_every=20)
    losses = [epoch.loss for epoch in found.history if epoch.loss is not None]
    assert losses[-1] < losses[0] and found.warning is None
    start, end = found.history[0].knn, found.history[-1].knn
    assert start is not None and end is not None and end > start + 5


def _learning(name: str, teacher: Path | None = None) -> PretrainSettings:
    usual = supported_options(name, {"prototypes": 50, "hidden": 128, "width": 128})
    seed = {"teacher": TINY, "teacher_weights": str(teacher), "queue": 240}
    chosen: dict[str, Any] = seed if name == "seed" else usual
    lr = {"seed": 0.3, "supervised": 0.1}.get(name, 1.0)
    return PretrainSettings(name, TINY, image_size=32, epochs=20, batch_size=60, lr=lr, options=chosen)
