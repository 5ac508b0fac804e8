"""Execution of runs: rows, predictions, resuming after kills, and one process at a time."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.backbones import DEFAULT_BACKBONE
from siesta.contracts import Codes, Resources
from siesta.errors import BadInput, Busy, Damaged
from siesta.experiment import (
    RunStatus,
    completed_steps,
    experiment_lock,
    load_config,
    planned_runs,
    read_dataset,
    run_all,
)
from siesta.experiment.metrics import Predictions
from siesta.experiment.results import read_results
from siesta.experiment.run_folder import read_predictions
from siesta.methods import METHODS, MethodSpec
from siesta.methods.ncm import NCM
from tests.experiment.conftest import WriteConfig
from tests.experiment.running import alike, answers, on_disk, rows_of


def test_rows_have_progress_costs_and_provenance(write_config: WriteConfig, tmp_path: Path) -> None:
    stages: list[RunStatus] = []
    config, out = write_config(), tmp_path / "out"
    rows = rows_of(config, out, stages=stages, methods=["siesta", "ncm"], orders=["class_incremental"])
    rows += rows_of(config, out, stages=stages, methods=["remind"], orders=["iid"])
    siesta = [row for row in rows if row["run"] == "siesta-class_incremental-0"]
    assert [(row["step"], row["phase"], row["classes"], row["n"]) for row in siesta] == [
        (0, "before", 2, 6),
        (0, "after", 2, 6),
        (1, "before", 4, 12),
        (1, "after", 4, 12),
    ]
    assert [row["updates"] for row in siesta] == [0, 16, 16, 32]
    assert siesta[-1]["bytes"]["codes"] == 20 * 8 * 2 * 2
    assert siesta[0]["flops"]["sleep"] == 0 < siesta[1]["flops"]["sleep"]
    assert {row["phase"] for row in rows if row["method"] == "ncm"} == {"after"}  # it never sleeps
    remind = [row for row in rows if row["run"] == "remind-iid-0"]
    assert remind[-1]["updates"] == 20 * 3 - 3  # the first two find fewer samples to rehearse
    for row in rows:
        assert {"schema", "config", "seed", "order", "parameters", "seconds", "commit", "date", "machine"} <= row.keys()
        assert row["seconds"]["wake"] > 0
        chosen = f"--methods {row['method']} --orders {row['order']['name']} --seeds 0"
        assert row["command"] == f"siesta run toy.toml {chosen}"
        assert row["data"]["dataset"] == "image_folder"
        assert "path" not in row["data"]
        json.dumps(row, allow_nan=False)
    assert {stage.run for stage in stages} == {row["run"] for row in rows}
    assert all(0 <= stage.fraction <= 1 for stage in stages)
    assert on_disk(tmp_path / "out")["siesta-class_incremental-0"] == [alike(row) for row in siesta]


def test_accuracies_of_rows_follow_from_stored_predictions(write_config: WriteConfig, tmp_path: Path) -> None:
    for row in rows_of(write_config(), tmp_path / "out", methods=["siesta"], orders=["class_incremental"]):
        stored = read_predictions(tmp_path / "out" / "runs" / row["run"], row["step"], row["phase"])
        predictions = Predictions(stored["top"], stored["truth"])
        assert (predictions.accuracy(1), predictions.accuracy(5)) == (row["top1"], row["top5"])
        assert len(stored["samples"]) == row["n"]
        assert stored["new_classes"].tolist() == ([0, 1] if row["step"] == 0 else [2, 3])
        assert (stored["top"][:, row["classes"] :] == -1).all()


def test_a_small_memory_may_be_ranked_by_herding(write_config: WriteConfig, tmp_path: Path) -> None:
    text = "[methods.siesta]\nsamples = 8\nselection = 'herding'"
    rows = rows_of(write_config("[methods.siesta]", text), tmp_path / "out", methods=["siesta"], orders=["iid"])
    assert [row["bytes"]["codes"] for row in rows] == [8 * 8 * 2 * 2] * 4
    assert {row["settings"]["selection"] for row in rows} == {"herding"}
    assert read_results([tmp_path / "out"]).runs[0].resources.flops["sleep"] > 0
    plain = rows_of(write_config(), tmp_path / "plain", "methods.siesta.samples=8", methods=["siesta"], orders=["iid"])
    assert all("selection" not in row["settings"] for row in plain)
    assert {row["config"] for row in rows}.isdisjoint(row["config"] for row in plain)
    assert rows[-1]["flops"]["sleep"] > plain[-1]["flops"]["sleep"]  # the features are counted


def test_finished_runs_are_not_executed_again(write_config: WriteConfig, tmp_path: Path) -> None:
    first = rows_of(write_config(), tmp_path / "out", methods=["ncm"])
    assert first
    assert rows_of(write_config(), tmp_path / "out", methods=["ncm"]) == []
    assert len(rows_of(write_config(), tmp_path / "out", methods=["ncm"], seeds=[0, 1])) == len(first)  # seed 1


def test_an_interrupted_experiment_resumes_and_ends_with_the_same_rows(
    write_config: WriteConfig, tmp_path: Path
) -> None:
    config = write_config()
    chosen: dict[str, Any] = {"methods": ["siesta", "remind"], "orders": ["class_incremental"]}
    short = "methods.siesta.updates=4"
    rows_of(config, tmp_path / "whole", short, **chosen)
    settings = load_config(config, [short], **chosen)
    dataset = read_dataset(settings)
    for stop in itertools.count(1):
        planned = planned_runs(settings, dataset)
        some = list(itertools.islice(run_all(planned, dataset, tmp_path / "parts"), stop % 3 + 1))
        if not some:
            break
    assert on_disk(tmp_path / "parts") == on_disk(tmp_path / "whole")
    assert answers(tmp_path / "parts") == answers(tmp_path / "whole")


def test_an_offline_learner_has_one_step(write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config("[methods.ncm]", "[methods.offline]\nepochs = 2\nbatch_size = 4")
    (row,) = rows_of(path, tmp_path / "out", methods=["offline"], orders=["class_incremental"])
    assert (row["step"], row["phase"], row["classes"], row["updates"]) == (0, "after", 4, 40)


def test_runs_under_another_config_are_refused(write_config: WriteConfig, tmp_path: Path) -> None:
    rows_of(write_config(), tmp_path / "out", methods=["ncm"])
    with pytest.raises(BadInput, match="with another config"):
        rows_of(write_config(), tmp_path / "out", "data.image_size=64", methods=["ncm"])


def without_means(method: NCM) -> Resources:
    resources = NCM.resources(method)
    return replace(resources, bytes={name: size for name, size in resources.bytes.items() if name != "means"})


def nan_after_learning(method: NCM) -> Resources:
    resources = NCM.resources(method)
    return replace(resources, flops={**resources.flops, "wake": float("nan")}) if method.workspace.seen else resources


def unknown_labels(_method: NCM, codes: Codes, top: int = 5) -> list[list[str]]:
    return [["colour 9"][:top]] * len(codes)


def no_labels(_method: NCM, codes: Codes, top: int = 5) -> list[list[str]]:
    return []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resources": without_means}, r"method 'bad' reports invalid resources \(bytes\.means: field required\)"),
        (
            {"resources": nan_after_learning},
            r"method 'bad' reports invalid resources \(flops\.wake: .* finite number\)",
        ),
        ({"predict_many": unknown_labels}, r"predict_many of method 'bad' predicted 'colour 9', which is no class"),
        ({"predict_many": no_labels}, r"predict_many of method 'bad' predicted labels of 0 for 6 samples"),
    ],
)
def test_a_method_that_gives_an_invalid_row_fails_before_it_is_written(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    bad: Any = type("Bad", (NCM,), changes)
    monkeypatch.setitem(METHODS, "bad", MethodSpec(bad))
    config = write_config("[methods.ncm]", "[methods.bad]")
    for _ in range(2):  # the second run finds what the first one left
        with pytest.raises(BadInput, match=message) as caught:
            rows_of(config, tmp_path / "out", methods=["bad"], orders=["class_incremental"])
        assert "\n" not in str(caught.value)
        run = tmp_path / "out" / "runs" / "bad-class_incremental-0"
        assert (run / "rows.jsonl").read_bytes() == b""
        assert not (run / "predictions").exists() and not (run / "done").exists()
    (unfinished,) = read_results([tmp_path / "out"]).unfinished
    assert unfinished.last is None


def test_completed_steps_are_counted(write_config: WriteConfig, tmp_path: Path) -> None:
    settings = load_config(write_config(), methods=["ncm"], orders=["iid"])
    dataset = read_dataset(settings)
    (planned,) = planned_runs(settings, dataset)
    assert completed_steps(planned, tmp_path / "out") == 0
    rows = run_all([planned], dataset, tmp_path / "out")
    next(rows), next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert completed_steps(planned, tmp_path / "out") == 1
    list(run_all([planned], dataset, tmp_path / "out"))
    assert completed_steps(planned, tmp_path / "out") == 2


def test_damaged_initial_states_and_checkpoints_name_what_to_remove(write_config: WriteConfig, tmp_path: Path) -> None:
    settings, out = load_config(write_config(), methods=["siesta"], orders=["class_incremental"]), tmp_path / "out"
    dataset = read_dataset(settings)
    list(itertools.islice(run_all(planned_runs(settings, dataset), dataset, out), 3))  # one step and a half
    run = out / "runs" / "siesta-class_incremental-0"
    for folder, removed in ((run / "checkpoint-0", run), (next((out / "starts").iterdir()),) * 2):
        (folder / "store.sqlite").write_bytes(b"nothing of it")
        with pytest.raises(Damaged, match=rf"damaged.*: remove {re.escape(str(removed))} to build it again"):
            rows_of(write_config(), out, methods=["siesta"], orders=["class_incremental"])
        shutil.rmtree(removed)
    assert len(rows_of(write_config(), out, methods=["siesta"], orders=["class_incremental"])) == 4


def test_one_process_runs_at_a_time(tmp_path: Path) -> None:
    with (
        experiment_lock(tmp_path / "out"),
        pytest.raises(Busy, match=str(os.getpid())),
        experiment_lock(tmp_path / "out"),
    ):
        pass
    with experiment_lock(tmp_path / "out"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_random_moments_ends_with_the_same_rows(
    write_config: WriteConfig, tmp_path: Path, seed: int
) -> None:
    config, rng = write_config(), np.random.default_rng(seed)
    network = f"network.backbone={DEFAULT_BACKBONE}"  # the small one is known in this process only
    command = [sys.executable, "-m", "siesta", "run", str(config), "--orders", "class_incremental"]
    command += ["--set", network, "--out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True, env=environment)
    kills = 0
    while True:
        child = subprocess.Popen(
            [*command, tmp_path / "parts"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            assert child.wait(timeout=rng.uniform(2, 12)) == 0
            break
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            kills += 1
    assert kills > 0, "it was never killed"
    assert on_disk(tmp_path / "parts") == on_disk(tmp_path / "whole")
    assert answers(tmp_path / "parts") == answers(tmp_path / "whole")
