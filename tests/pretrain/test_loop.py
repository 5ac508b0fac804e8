"""The loop measures when it should, writes checkpoints and stops a run that diverges."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.pretrain.loop import PretrainRun, PretrainStatus, divergence_message
from siesta.pretrain.run import pretrain
from tests.kills import kill_this_process, run_until_killed
from tests.pretrain.toys import quick_settings, register_tiny


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.safetensors"


def test_the_status_says_how_far_a_run_has_come(textures: Path, out: Path) -> None:
    statuses: list[PretrainStatus] = []
    pretrain(quick_settings(epochs=2), textures, out, on_step=statuses.append)
    assert [status.pictures for status in statuses] == [16, 32, 48, 64, 80, 96]
    assert [status.epoch for status in statuses] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3, 5 / 3, 2])
    assert [status.fraction for status in statuses] == pytest.approx([n / 6 for n in range(1, 7)])
    assert statuses[-1].seconds_left == 0 < statuses[0].seconds_left


def test_an_epoch_records_the_mean_loss_of_its_steps(textures: Path, out: Path) -> None:
    statuses: list[PretrainStatus] = []
    result = pretrain(quick_settings(epochs=2), textures, out, on_step=statuses.append)
    losses = [status.loss for status in statuses]
    start, first, second = result.history
    assert start.loss is None and not start.watched
    assert first.loss == pytest.approx(sum(losses[:3]) / 3) and second.loss == pytest.approx(sum(losses[3:]) / 3)
    assert first.watched.keys() == {"feature_std"}


def test_knn_accuracy_is_measured_before_training_when_due_and_at_the_end(textures: Path, out: Path) -> None:
    result = pretrain(quick_settings(epochs=5), textures, out, labelled=textures, knn_every=2)
    measured = [epoch.epoch for epoch in result.history if epoch.knn is not None]
    assert measured == [0, 2, 4, 5]


def test_a_signal_during_the_last_step_does_not_interrupt_the_run(textures: Path, out: Path) -> None:
    def stop(status: PretrainStatus) -> None:
        if status.fraction == 1:
            os.kill(os.getpid(), signal.SIGINT)

    assert pretrain(quick_settings(), textures, out, on_step=stop).status == "trained"


def test_a_checkpoint_is_written_from_time_to_time(textures: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    save = PretrainRun.save

    def note_and_save(run: PretrainRun, *arguments: Any) -> None:
        saved.append(run.progress.step)
        save(run, *arguments)

    monkeypatch.setattr(PretrainRun, "save", note_and_save)
    minutes = itertools.count(step=200.0)  # of a clock on which a step takes minutes
    monkeypatch.setattr("siesta.pretrain.loop.time", SimpleNamespace(monotonic=lambda: next(minutes)))
    pretrain(quick_settings(epochs=2), textures, out)
    assert saved[0] == 0 and saved[-1] == 6, "before the first step, and at the end"
    assert len(saved) > 2, "and in between"


def pretrain_until_killed(data: Path, out: Path, step: int) -> None:
    def kill(status: PretrainStatus) -> None:
        if status.pictures == 16 * step:
            kill_this_process()

    register_tiny()
    pretrain(quick_settings(epochs=2), data, out, on_step=kill)


def test_a_killed_run_continues_and_ends_with_the_same_weights(textures: Path, out: Path, tmp_path: Path) -> None:
    """Killed by kill -9 in the second and in the fifth of six steps."""
    for step in (2, 5):
        run_until_killed(pretrain_until_killed, textures, out, step)
        assert out.with_name(f"{out.name}.part").exists()
    statuses: list[PretrainStatus] = []
    resumed = pretrain(quick_settings(epochs=2), textures, out, on_step=statuses.append)
    assert [status.pictures for status in statuses] == [80, 96], "the fifth step was not saved"
    whole = pretrain(quick_settings(epochs=2), textures, tmp_path / "whole.safetensors")
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert resumed.history == whole.history


def test_a_run_that_diverges_is_stopped_with_advice(textures: Path, out: Path) -> None:
    with pytest.raises(BadInput, match=r"diverged: remove .*\.part and use a lower learning rate"):
        pretrain(quick_settings("supervised", lr=1e30, epochs=3), textures, out)
    assert not out.exists()


def test_a_run_that_diverges_in_its_last_step_is_not_written(textures: Path, out: Path) -> None:
    with pytest.raises(BadInput, match=r"diverged: remove .*\.part and use a lower learning rate"):
        pretrain(quick_settings("supervised", lr=1e30, batch_size=48), textures, out)
    assert not out.exists()


def test_the_advice_names_the_checkpoint() -> None:
    assert divergence_message(Path("x.part")) == "the training diverged: remove x.part and use a lower learning rate"
