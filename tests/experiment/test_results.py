"""Results are read, verified against predictions, and archived."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged, SiestaError
from siesta.experiment.archive import ARCHIVE_FILE
from siesta.experiment.results import archive_runs, read_results
from tests.experiment.written_runs import write_run


def accuracy(file: Path, k: int) -> float:
    with np.load(file) as arrays:
        right = [truth in top[:k] for truth, top in zip(arrays["truth"], arrays["top"], strict=True)]
    return 100 * sum(right) / len(right)


def test_accuracies_are_computed_from_stored_predictions(out: Path) -> None:
    results = read_results([out])
    assert len(results.runs) == 4 * 2 * 2 + 2
    for run in results.runs:
        for k in (1, 5):
            files = sorted((run.path / "predictions").glob("*-after.npz"))
            after = [accuracy(file, k) for file in files]
            assert run.metrics[k].after == pytest.approx(after)
            assert run.metrics[k].alpha == pytest.approx(after[-1])
            assert run.metrics[k].mu == pytest.approx(sum(after) / len(after))
            early = sorted((run.path / "predictions").glob("*-before.npz"))
            assert [some for some in run.metrics[k].before if some is not None] == pytest.approx(
                [accuracy(file, k) for file in early]
            )


def test_a_run_knows_its_source_data_and_costs(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", seed=3)
    (run,) = read_results([tmp_path / "toy"]).runs
    assert (run.source, run.last["seed"], run.offline, len(run.samples)) == ("toy", 3, False, 60)
    assert run.data == "cub200, 224 px"
    assert run.whole_dataset == "cub200"
    assert run.resources.updates == run.last["updates"] == 300


@pytest.mark.parametrize(
    ("data", "words", "whole_dataset"),
    [
        ({"dataset": "a", "image_size": 32, "options": {"classes": 3}}, "a, 32 px, the first 3 classes", None),
        (
            {"dataset": "a", "image_size": 32, "options": {"images_per_class": 5}},
            "a, 32 px, 5 training images a class",
            None,
        ),
        ({"dataset": "a", "image_size": 32, "options": {"test": "val"}}, "a, 32 px, test val", "a"),
        ({"dataset": "a", "image_size": 8, "held_out": 0.25}, "a, 8 px, tested on 25% of the training.*held out", None),
        (None, "toy", None),  # a row of an earlier version
    ],
)
def test_the_description_of_the_data(
    tmp_path: Path, data: dict[str, Any] | None, words: str, whole_dataset: str | None
) -> None:
    import re

    write_run(tmp_path / "toy", data=data)
    (run,) = read_results([tmp_path / "toy"]).runs
    assert re.fullmatch(words, run.data)
    assert run.whole_dataset == whole_dataset


def test_unfinished_runs_are_separate_from_finished_ones(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", "ncm", done=False)
    (tmp_path / "toy" / "runs" / "ncm-iid-0").mkdir()
    (tmp_path / "toy" / "runs" / "ncm-iid-0" / "identity").write_text("x")
    results = read_results([tmp_path])
    assert results.runs == []
    by_name = {run.name: run.last for run in results.unfinished}
    assert by_name["ncm-iid-0"] is None
    last = by_name["ncm-class_incremental-0"]
    assert last is not None
    assert last["step"] == 2


def test_archives_and_live_folders_give_the_same_results(out: Path, tmp_path: Path) -> None:
    sizes = archive_runs([out], tmp_path / "results")
    assert set(sizes) == {tmp_path / "results" / "toy" / run.path.name for run in read_results([out]).runs}
    live, kept = ({run.path.name: run for run in read_results([some]).runs} for some in (out, tmp_path / "results"))
    assert live.keys() == kept.keys()
    for name, run in live.items():
        assert (run.source, run.rows, run.metrics) == (kept[name].source, kept[name].rows, kept[name].metrics)
    write_run(tmp_path / "new", done=False)
    with pytest.raises(BadInput, match="none of these runs is finished"):
        archive_runs([tmp_path / "new"], tmp_path / "results")


def test_a_folder_given_twice_counts_once_but_two_of_a_name_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "toy")
    assert len(read_results([tmp_path / "a", tmp_path / "a" / "toy"]).runs) == 1
    write_run(tmp_path / "b" / "toy")
    with pytest.raises(BadInput, match="have the same name"):
        read_results([tmp_path / "a", tmp_path / "b"])


def change_row(**values: Any) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
        rows[1] |= values
        rows[1] = {name: value for name, value in rows[1].items() if value is not ...}
        (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    return change


def cut_rows(count: int) -> Callable[[Path], None]:
    def cut(run: Path) -> None:
        lines = (run / "rows.jsonl").read_text().splitlines(keepends=True)
        (run / "rows.jsonl").write_text("".join(lines[:-count]))

    return cut


def change_answers(**arrays: Any) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        file = run / "predictions" / "00-after.npz"
        with np.load(file) as stored:
            kept = {name: stored[name] for name in stored.files} | arrays
        np.savez(file, **{name: array for name, array in kept.items() if array is not ...})

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change_row(top1=12.5), r"00-after\.npz gives top1 = .* for step 0 after sleep, rows\.jsonl says 12\.5"),
        (change_row(top5=12.5), r"00-after\.npz gives top5 = "),
        (change_row(n=1), r"00-after\.npz gives n = 20 for .* says 1:"),
        (change_row(seconds=...), r"line 2 of .*rows\.jsonl is not a result row \(seconds: field required\): remove"),
        (change_row(seconds={"wake": 1.0, "inference": 1.0}), r"not a result row \(seconds\.sleep: field required\)"),
        (change_row(seconds={"wake": -1.0, "sleep": 1.0, "inference": 1.0}), r"not a result row \(seconds\.wake: "),
        (change_row(machine=None), r"not a result row \(machine: "),
        (change_row(top1="70.9"), r"not a result row \(top1: "),
        (change_row(top1=float("nan")), r"not a result row \(top1: "),
        (change_row(parameters=0), r"not a result row \(parameters: "),
        (change_row(updates=-5), r"not a result row \(updates: "),
        (change_row(classes=0), r"not a result row \(classes: "),
        (change_row(order={}), r"not a result row \(order\.name: "),
        (change_row(data={}), r"not a result row \(data\.dataset: "),
        (change_row(commit=""), r"not a result row \(commit: "),
        (change_row(schema=2), r"rows\.jsonl has rows of schema 2, this version reads 1"),
        (change_row(schema=...), r"line 2 of .*rows\.jsonl is not a result row"),
        (change_row(phase="before", top1=0), r"00-before\.npz gives top1"),
        (change_row(step=7, phase="after"), r"07-after\.npz is missing"),
        (lambda run: (run / "rows.jsonl").write_text("{\n"), r"rows\.jsonl is damaged"),
        (lambda run: (run / "rows.jsonl").write_text("3\n"), r"line 1 of .* is not a result row"),
        (cut_rows(1), r"rows\.jsonl lacks rows although the run is done: remove"),
        (cut_rows(2), r"rows\.jsonl lacks rows although the run is done"),
        (lambda run: (run / "rows.jsonl").write_text(""), r"rows\.jsonl lacks rows although the run is done"),
        (lambda run: (run / "predictions" / "01-after.npz").unlink(), r"01-after\.npz is missing"),
        (lambda run: (run / "predictions" / "01-after.npz").write_text("x"), r"01-after\.npz is damaged"),
        (change_answers(new_classes=...), r"00-after\.npz does not hold the predictions of a step"),
        (change_answers(truth=np.zeros(3, dtype=np.int32)), r"00-after\.npz does not hold the predictions of a step"),
    ],
)
def test_damaged_runs_are_refused_in_one_sentence(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    damage(write_run(tmp_path / "toy"))
    with pytest.raises(Damaged, match=words) as caught:
        read_results([tmp_path / "toy"])
    assert "\n" not in str(caught.value)


def test_an_archive_must_agree_with_its_rows_too(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    (kept,) = archive_runs([tmp_path / "toy"], tmp_path / "results")
    change_row(top1=12.5)(kept)
    with pytest.raises(Damaged, match=rf"{ARCHIVE_FILE} gives top1 = .* for step 0 after sleep.*: restore it"):
        read_results([tmp_path / "results"])


@pytest.mark.parametrize("count", [1, 2])
def test_an_archive_with_missing_rows_is_refused(tmp_path: Path, count: int) -> None:
    write_run(tmp_path / "toy")
    (kept,) = archive_runs([tmp_path / "toy"], tmp_path / "results")
    cut_rows(count)(kept)
    with pytest.raises(Damaged, match=r"rows\.jsonl lacks rows although the run is done: restore it"):
        read_results([tmp_path / "results"])


def test_an_archive_does_not_overwrite_runs_or_files(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy")
    with pytest.raises(BadInput, match="lies inside the run"):
        archive_runs([tmp_path / "toy"], run / "kept")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="file"):
        archive_runs([tmp_path / "toy"], tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    before = {file: file.read_bytes() for file in archive_files(tmp_path)}
    archive_runs([tmp_path / "results"], tmp_path / "results")  # onto itself
    assert {file: file.read_bytes() for file in archive_files(tmp_path)} == before


def archive_files(folder: Path) -> list[Path]:
    """The files of an archive made in a folder, if it is not there yet."""
    if not (folder / "results").exists():
        archive_runs([folder / "toy"], folder / "results")
    return [file for file in (folder / "results").rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_folders_without_runs_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SiestaError, match="give the --out folder of `siesta run`"):
        read_results([tmp_path / name])
