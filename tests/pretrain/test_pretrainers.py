"""What every method of pre-training must do."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from siesta.backbones import make_backbone
from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loop import Standing
from siesta.pretrain.result import Pretrained
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import Settings
from tests.pretrain.toys import QUICK, TINY, draw_textures, make, views_for

NAMES = list(PRETRAINERS)


def settings(name: str, **others: Any) -> Settings:
    values: dict[str, Any] = {"image_size": 32, "epochs": 3, "batch_size": 16, "seed": 5}
    return Settings(name, backbone=TINY, options=QUICK[name], **{**values, **others})


def test_options_are_known_for_all() -> None:
    assert list(QUICK) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns_or_stands_still_on_purpose(name: str) -> None:
    method = make(name)
    method.train()
    every = [weights for part in method.parts() for weights in part.parameters]
    learning = {id(weights) for weights in method.parameters() if weights.requires_grad}
    assert len(every) == len({id(weights) for weights in every}) and {id(weights) for weights in every} == learning
    optimizer = make_optimizer(method.parts(), method.recipe)
    before = {label: weights.detach().clone() for label, weights in method.named_parameters()}
    for step in range(2):  # the first has nothing to compare with in a queue
        outcome = method(views_for(name, seed=step), 0.45)
        assert outcome.loss.shape == () and bool(outcome.loss.isfinite())
        assert (outcome.embedding is None) == method.labelled
        assert method.labelled or (len(outcome.embedding) == 8 and not outcome.embedding.requires_grad)
        if outcome.shares is not None:
            torch.testing.assert_close(outcome.shares.sum(dim=1), torch.ones(8))
        optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()
        optimizer.prepare(0.1, 0.45)
        optimizer.step()
    still = {label for label, weights in method.named_parameters() if torch.equal(weights, before[label])}
    bound = {label for label, weights in method.named_parameters() if not weights.requires_grad}
    assert {label for label in still if "slow" not in label} == {label for label in bound if "slow" not in label}


@pytest.mark.parametrize("name", NAMES)
def test_stopped_and_resumed_is_the_same_run(
    name: str, textures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pretrain(settings(name), textures, tmp_path / "whole.safetensors", labelled=textures)
    assert whole.status == "trained" and whole.pictures == 144 and whole.epochs == 3
    assert [epoch.epoch for epoch in whole.history] == [0, 1, 2, 3]

    def stop(standing: Standing) -> None:
        if standing.pictures in (16 * 2, 16 * 6):  # inside an epoch, and at the end of one
            os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "parts.safetensors"
    parts = [pretrain(settings(name), textures, out, labelled=textures, on_step=stop) for _ in range(3)]
    assert [part.status for part in parts] == ["interrupted", "interrupted", "trained"]
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert parts[-1].history == whole.history
    assert not (tmp_path / "parts.safetensors.part").exists()
    assert pretrain(settings(name), textures, out).status == "known"


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_those_that_were_trained_and_can_be_read(name: str, textures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    found = pretrain(settings(name, epochs=1), textures, out)
    fresh, trained = (make_backbone(TINY, 0, weights=weights) for weights in ("random", out))
    pairs = zip(fresh.top.named_parameters(), trained.top.parameters(), strict=True)
    assert not any(torch.equal(old, new) for (_, old), new in pairs)
    assert trained.ignored == ()
    facts = json.loads((tmp_path / "out.safetensors.json").read_text("utf-8"))
    assert facts["settings"]["method"] == name and facts["pictures"] == found.pictures == 48
    assert {"date", "commit", "machine", "data"} <= set(facts) and facts["settings"]["rate"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_run_by_time_ends_in_time(name: str, textures: Path, tmp_path: Path) -> None:
    found = pretrain(settings(name, epochs=None, seconds=0.05), textures, tmp_path / "out.safetensors")
    assert found.status == "trained" and found.seconds >= 0.05 and found.pictures < 10_000


def test_two_seeds_are_two_runs(textures: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        pretrain(settings("swav", epochs=1, seed=seed), textures, tmp_path / f"{seed}.safetensors")
    assert (tmp_path / "1.safetensors").read_bytes() != (tmp_path / "2.safetensors").read_bytes()


def test_a_run_that_diverges_says_so(textures: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"diverged: remove .* and use a lower learning rate"):
        pretrain(settings("supervised", rate=1e30), textures, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_loss_falls_and_neighbours_get_better(name: str, tmp_path: Path) -> None:
    textures, teacher = draw_textures(tmp_path / "many", classes=5, each=60), tmp_path / "teacher.safetensors"
    if name == "seed":
        pretrain(_learning("supervised"), textures, teacher)
    found = pretrain(_learning(name, teacher), textures, tmp_path / "out.safetensors", labelled=textures, knn_every=20)
    losses = [epoch.loss for epoch in found.history if epoch.loss is not None]
    assert losses[-1] < losses[0] and found.warning is None
    start, end = found.history[0].knn, found.history[-1].knn
    assert start is not None and end is not None and end > start + 5


def _learning(name: str, teacher: Path | None = None) -> Settings:
    options: dict[str, dict[str, Any]] = {
        "barlow_twins": {"width": 128},
        "mira+barlow_twins": {"prototypes": 50, "hidden": 128, "width": 128},
        "seed": {"teacher": TINY, "teacher_weights": str(teacher), "queue": 240},
        "supervised": {},
    }
    chosen = options.get(name, {"prototypes": 50, "hidden": 128})
    rate = {"seed": 0.3, "supervised": 0.1}.get(name, 1.0)
    return Settings(name, TINY, image_size=32, epochs=20, batch_size=60, rate=rate, options=chosen)


def test_pretrained_is_plain(textures: Path, tmp_path: Path) -> None:
    found: Pretrained = pretrain(settings("swav", epochs=1), textures, tmp_path / "out.safetensors")
    assert found.history[0].loss is None and found.history[1].watched.keys() == {"feature_std", "prototype_entropy"}
