from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.errors import BadInput, Busy, Damaged
from siesta.experiment import Stage, load_config, locked, planned_runs, read_dataset, run_all, steps_done
from siesta.experiment.metrics import Predictions
from siesta.experiment.run_folder import read_predictions
from tests.experiment.conftest import WriteConfig

UNLIKE = ("seconds", "date", "commit", "machine")  # what two runs of the same thing may differ in


def rows_of(config: Path, out: Path, *changes: str, stages: list[Stage] | None = None, **chosen: Any) -> list[Any]:
    settings = load_config(config, changes, **chosen)
    dataset = read_dataset(settings)
    on_stage = None if stages is None else stages.append
    return list(run_all(planned_runs(settings, dataset), dataset, out, on_stage))


def alike(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in UNLIKE}


def on_disk(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every run of an experiment, without what may differ."""
    return {
        folder.name: [alike(json.loads(line)) for line in (folder / "rows.jsonl").read_text().splitlines()]
        for folder in sorted((out / "runs").iterdir())
    }


def answers(out: Path) -> dict[str, bytes]:
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.glob("runs/*/predictions/*.npz"))}


def test_rows_say_what_was_done_and_what_it_cost(write_config: WriteConfig, tmp_path: Path) -> None:
    stages: list[Stage] = []
    rows = rows_of(write_config(), tmp_path / "out", stages=stages)
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


def test_accuracy_follows_from_the_stored_answers(write_config: WriteConfig, tmp_path: Path) -> None:
    for row in rows_of(write_config(), tmp_path / "out", methods=["siesta"], orders=["class_incremental"]):
        stored = read_predictions(tmp_path / "out" / "runs" / row["run"], row["step"], row["phase"])
        predictions = Predictions(stored["top"], stored["truth"])
        assert (predictions.accuracy(1), predictions.accuracy(5)) == (row["top1"], row["top5"])
        assert len(stored["samples"]) == row["n"]
        assert stored["new_classes"].tolist() == ([0, 1] if row["step"] == 0 else [2, 3])
        assert (stored["top"][:, row["classes"] :] == -1).all()


def test_a_second_time_there_is_nothing_left_to_do(write_config: WriteConfig, tmp_path: Path) -> None:
    first = rows_of(write_config(), tmp_path / "out", methods=["ncm"])
    assert first
    assert rows_of(write_config(), tmp_path / "out", methods=["ncm"]) == []
    assert len(rows_of(write_config(), tmp_path / "out", methods=["ncm"], seeds=[0, 1])) == len(first)  # seed 1


def test_an_interrupted_experiment_goes_on_and_ends_with_the_same_rows(
    write_config: WriteConfig, tmp_path: Path
) -> None:
    config = write_config()
    chosen: dict[str, Any] = {"methods": ["siesta", "remind"], "orders": ["class_incremental"]}
    rows_of(config, tmp_path / "whole", **chosen)
    settings = load_config(config, **chosen)
    dataset = read_dataset(settings)
    for stop in itertools.count(1):
        planned = planned_runs(settings, dataset)
        some = list(itertools.islice(run_all(planned, dataset, tmp_path / "parts"), stop % 3 + 1))
        if not some:
            break
    assert on_disk(tmp_path / "parts") == on_disk(tmp_path / "whole")
    assert answers(tmp_path / "parts") == answers(tmp_path / "whole")


def test_an_order_may_be_held_out_from_the_training_set(write_config: WriteConfig, tmp_path: Path) -> None:
    rows = rows_of(write_config(), tmp_path / "out", "data.held_out=0.4", methods=["ncm"], orders=["iid"])
    assert rows[-1]["n"] == 8  # 2 of the 5 training pictures of each class
    assert (
        rows[-1]["order"]["hash"]
        != rows_of(write_config(), tmp_path / "o", methods=["ncm"], orders=["iid"])[-1]["order"]["hash"]
    )


def test_offline_sees_all_of_it_at_once(write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config("[methods.ncm]", "[methods.offline]\nepochs = 2\nbatch_size = 4")
    (row,) = rows_of(path, tmp_path / "out", methods=["offline"], orders=["class_incremental"])
    assert (row["step"], row["phase"], row["classes"], row["updates"]) == (0, "after", 4, 40)


def test_base_initialisation_is_the_first_step(write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config("classes_per_step = 2", "classes_per_step = 1\nbase_classes = 2")
    path.write_text(path.read_text() + "\n[base]\nepochs = 2\nbatch_size = 4\n")
    rows = rows_of(path, tmp_path / "out", "data.image_size=96", orders=["class_incremental"])
    for method in ("siesta", "remind", "ncm"):
        mine = [row for row in rows if row["method"] == method and row["phase"] == "after"]
        assert [row["classes"] for row in mine] == [2, 3, 4]
        assert mine[0]["updates"] == 0  # pre-training is not continual learning
    assert len(list((tmp_path / "out" / "starts").iterdir())) == 1  # all three start from the same
    with pytest.raises(BadInput, match=r"orders\.iid has no base step"):
        rows_of(path, tmp_path / "iid", "data.image_size=96", orders=["iid"])


def test_runs_under_another_config_are_refused(write_config: WriteConfig, tmp_path: Path) -> None:
    rows_of(write_config(), tmp_path / "out", methods=["ncm"])
    with pytest.raises(BadInput, match="under another config"):
        rows_of(write_config(), tmp_path / "out", "data.image_size=64", methods=["ncm"])


def test_another_image_size_starts_from_a_learner_of_its_own(write_config: WriteConfig, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"methods": ["ncm"], "orders": ["iid"]}
    rows_of(write_config(), tmp_path / "out", **chosen)
    path = write_config("[methods.ncm]", "[methods.siesta_awake]")
    (*_, row) = rows_of(path, tmp_path / "out", "data.image_size=64", methods=["siesta_awake"], orders=["iid"])
    assert row["bytes"]["codes"] == 20 * 8 * 4 * 4
    assert len(list((tmp_path / "out" / "starts").iterdir())) == 2


def test_a_changed_test_set_is_another_run(write_config: WriteConfig, tmp_path: Path, colours: Path) -> None:
    rows_of(write_config(), tmp_path / "out", methods=["ncm"], orders=["iid"])
    (colours / "test" / "colour 1" / "1.png").rename(colours / "test" / "colour 2" / "9.png")
    with pytest.raises(BadInput, match="under another config"):
        rows_of(write_config(), tmp_path / "out", methods=["ncm"], orders=["iid"])


def test_what_cannot_come_to_its_end_is_refused_before_it_begins(write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config("[methods.ncm]", "[methods.offline]")
    for change, words in (
        ("samples=3", "methods.offline needs all 20 samples and may store 3"),
        ("network.space=curved", r"methods\.siesta\.network: there is no space 'curved'"),
        ("network.weights=/nowhere", "no file of weights at /nowhere"),
        ("network.codec_pictures=/nowhere", "no folder of pictures at /nowhere"),
        ("network.backbone=vgg", "no backbone 'vgg'"),
    ):
        with pytest.raises(BadInput, match=words):
            rows_of(path, tmp_path / "out", change)
    assert not (tmp_path / "out").exists()
    for picture in Path(load_config(path).data.path, "test", "colour 0").iterdir():
        picture.unlink()
    with pytest.raises(BadInput, match="no test pictures of the classes of its first step"):
        rows_of(path, tmp_path / "out", "orders.class_incremental.classes_per_step=1")


def test_steps_done_are_counted(write_config: WriteConfig, tmp_path: Path) -> None:
    settings = load_config(write_config(), methods=["ncm"], orders=["iid"])
    dataset = read_dataset(settings)
    (planned,) = planned_runs(settings, dataset)
    assert steps_done(planned, tmp_path / "out") == 0
    rows = run_all([planned], dataset, tmp_path / "out")
    next(rows), next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert steps_done(planned, tmp_path / "out") == 1
    list(run_all([planned], dataset, tmp_path / "out"))
    assert steps_done(planned, tmp_path / "out") == 2


def test_damaged_starts_and_checkpoints_say_what_to_remove(write_config: WriteConfig, tmp_path: Path) -> None:
    settings, out = load_config(write_config(), methods=["siesta"], orders=["class_incremental"]), tmp_path / "out"
    dataset = read_dataset(settings)
    list(itertools.islice(run_all(planned_runs(settings, dataset), dataset, out), 3))  # one step and a half
    run = out / "runs" / "siesta-class_incremental-0"
    for folder, removed in ((run / "checkpoint-0", run), (next((out / "starts").iterdir()),) * 2):
        (folder / "store.sqlite").write_bytes(b"nothing of it")
        with pytest.raises(Damaged, match=rf"damaged.*: remove {re.escape(str(removed))} to make it anew"):
            rows_of(write_config(), out, methods=["siesta"], orders=["class_incremental"])
        shutil.rmtree(removed)
    assert len(rows_of(write_config(), out, methods=["siesta"], orders=["class_incremental"])) == 4


def test_a_start_that_was_not_finished_leaves_nothing(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("siesta.experiment.start.train_base", interrupted)
    path = write_config("classes_per_step = 2", "classes_per_step = 2\nbase_classes = 2\n\n[base]\nepochs = 1")
    with pytest.raises(KeyboardInterrupt):
        rows_of(path, tmp_path / "out", "data.image_size=96", methods=["siesta"], orders=["class_incremental"])
    assert list((tmp_path / "out" / "starts").iterdir()) == []


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path / "out"), pytest.raises(Busy, match=str(os.getpid())), locked(tmp_path / "out"):
        pass
    with locked(tmp_path / "out"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments_it_ends_with_the_same_rows(
    write_config: WriteConfig, tmp_path: Path, seed: int
) -> None:
    config, rng = write_config(), np.random.default_rng(seed)
    command = [sys.executable, "-m", "siesta", "run", str(config), "--orders", "class_incremental", "--out"]
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
