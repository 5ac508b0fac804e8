"""Initial states: base initialisation, sharing between methods, and interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.experiment import RunStatus, load_config, planned_runs, read_dataset, run_all
from tests.experiment import toys
from tests.experiment.conftest import WriteConfig
from tests.experiment.running import rows_of
from tests.kills import count_steps, kill_this_process, run_until_killed


def test_base_initialisation_is_the_first_step_of_all_methods(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.use_torch_engine(monkeypatch)
    path = write_config("classes_per_step = 2", "classes_per_step = 1\nbase_classes = 2")
    path.write_text(path.read_text() + "\n[base]\nepochs = 1\nbatch_size = 4\n")
    changes = "data.image_size=96", "methods.siesta.updates=4", "methods.siesta.head=cosine"
    rows = rows_of(path, tmp_path / "out", *changes, orders=["class_incremental"])
    for method in ("siesta", "remind", "ncm"):
        mine = [row for row in rows if row["method"] == method and row["phase"] == "after"]
        assert [row["classes"] for row in mine] == [2, 3, 4]
        assert mine[0]["updates"] == 0  # pre-training is not continual learning
    assert len(list((tmp_path / "out" / "starts").iterdir())) == 1  # all three start from the same
    with pytest.raises(BadInput, match=r"orders\.iid has no base step"):
        rows_of(path, tmp_path / "iid", "data.image_size=96", orders=["iid"])


def test_another_image_size_has_another_initial_state(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.use_torch_engine(monkeypatch)
    chosen: dict[str, Any] = {"methods": ["ncm"], "orders": ["iid"]}
    rows_of(write_config(), tmp_path / "out", **chosen)
    path = write_config("[methods.ncm]", "[methods.siesta_awake]")
    (*_, row) = rows_of(path, tmp_path / "out", "data.image_size=64", methods=["siesta_awake"], orders=["iid"])
    assert row["bytes"]["codes"] == 20 * 8 * 4 * 4
    assert len(list((tmp_path / "out" / "starts").iterdir())) == 2


def test_an_interrupted_initial_state_leaves_no_files(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("siesta.experiment.initial_state.train_base", interrupted)
    path = write_config("classes_per_step = 2", "classes_per_step = 2\nbase_classes = 2\n\n[base]\nepochs = 1")
    with pytest.raises(KeyboardInterrupt):
        rows_of(path, tmp_path / "out", "data.image_size=96", methods=["siesta"], orders=["class_incremental"])
    assert list((tmp_path / "out" / "starts").iterdir()) == []


def prepare_until_killed(config: Path, out: Path, changes: tuple[str, ...], activity: str, fraction: float) -> None:
    settings = load_config(config, changes, methods=["siesta"], orders=["class_incremental"])
    dataset = read_dataset(settings)

    def kill(status: RunStatus) -> None:
        if status.activity == activity and status.fraction >= fraction:
            kill_this_process()

    with pytest.MonkeyPatch.context() as patch:
        toys.use_torch_engine(patch)
        list(run_all(planned_runs(settings, dataset), dataset, out, kill))


def test_a_killed_base_training_continues_and_ends_with_the_same_weights(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed by kill -9 after two and after three of five steps."""
    path = write_config("classes_per_step = 2", "classes_per_step = 2\nbase_classes = 2\n\n[base]\nepochs = 2")
    path.write_text(path.read_text().replace("epochs = 2", "epochs = 2\nbatch_size = 4"))
    changes = "data.image_size=96", "methods.siesta.updates=0"
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    for fraction in (0.4, 0.6):
        run_until_killed(prepare_until_killed, path, parts, changes, "base initialisation", fraction)
        assert any(file.name.endswith(".training") for file in (parts / "starts").iterdir())
    toys.use_torch_engine(monkeypatch)
    steps = count_steps(monkeypatch)
    rows_of(path, parts, *changes, methods=["siesta"], orders=["class_incremental"])
    assert len(steps) == 2
    rows_of(path, whole, *changes, methods=["siesta"], orders=["class_incremental"])
    assert len(steps) == 2 + 5
    assert tensors(parts) == tensors(whole) and tensors(whole)
    assert len(list((parts / "starts").iterdir())) == 1, "the checkpoint is removed"


def tensors(out: Path) -> dict[str, bytes]:
    """Return every file of tensors of the initial states."""
    files = sorted((out / "starts").rglob("*.safetensors"))
    return {str(file.relative_to(out)): file.read_bytes() for file in files}
