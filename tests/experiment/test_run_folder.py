"""Checkpoints, rows and predictions of a run survive kills; damage is reported."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged
from siesta.experiment.run_folder import RunFolder, read_predictions, read_rows


def row(step: int, phase: str = "after") -> dict[str, Any]:
    return {"step": step, "phase": phase, "n": 2}


ANSWERS = {"truth": np.array([1, 2], dtype=np.int32), "top": np.array([[1, -1], [2, 1]], dtype=np.int32)}


@pytest.fixture
def start(tmp_path: Path) -> Path:
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "weights").write_text("as they came")
    return folder


def test_a_run_resumes_from_the_last_checkpoint_and_drops_later_rows(tmp_path: Path, start: Path) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    (folder.work / "weights").write_text("after step 0")
    folder.add(row(0), ANSWERS)
    folder.checkpoint(0)
    (folder.work / "weights").write_text("in step 1")
    folder.add(row(1, "before"), ANSWERS)

    again = RunFolder(tmp_path / "run", "abc")
    assert again.last_step == 0
    again.begin(start)
    assert (again.work / "weights").read_text() == "after step 0"
    assert again.rows() == [row(0)]
    assert not again.done
    again.checkpoint(1)
    again.finish()
    assert RunFolder(tmp_path / "run", "abc").done
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "done",
        "identity",
        "predictions",
        "rows.jsonl",
    ]


def test_a_checkpoint_that_was_not_finished_does_not_count(tmp_path: Path, start: Path) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    folder.checkpoint(0)
    shutil.copytree(folder.work, tmp_path / "run" / ".checkpoint-1.partial")
    assert RunFolder(tmp_path / "run", "abc").last_step == 0


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path, start: Path) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    folder.add(row(0), ANSWERS)
    with (tmp_path / "run" / "rows.jsonl").open("a") as file:
        file.write('{"step": 1, "pha')
    assert read_rows(tmp_path / "run") == [row(0)]


def test_predictions_are_read_as_they_were_written(tmp_path: Path, start: Path) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    folder.add(row(3, "before"), ANSWERS)
    back = read_predictions(tmp_path / "run", 3, "before")
    assert all((back[name] == ANSWERS[name]).all() for name in ANSWERS)
    with pytest.raises(Damaged, match=r"03-after\.npz is missing"):
        read_predictions(tmp_path / "run", 3, "after")
    (tmp_path / "run" / "predictions" / "03-before.npz").write_bytes(b"nothing")
    with pytest.raises(Damaged, match=r"03-before\.npz is damaged"):
        read_predictions(tmp_path / "run", 3, "before")


def test_a_row_in_the_middle_that_cannot_be_read_is_damage(tmp_path: Path, start: Path) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    (tmp_path / "run" / "rows.jsonl").write_text("nonsense\n")
    with pytest.raises(Damaged, match=r"rows\.jsonl is damaged"):
        folder.rows()


def test_the_folder_of_another_run_is_refused_and_not_touched(tmp_path: Path, start: Path) -> None:
    RunFolder(tmp_path / "run", "abc").begin(start)
    with pytest.raises(BadInput, match="with another config"):
        RunFolder(tmp_path / "run", "xyz")
    assert (tmp_path / "run" / "work" / "weights").read_text() == "as they came"


@pytest.mark.parametrize("lines", ["", "3\n", "{}\n", '{"step": 0, "phase": "before"}\n', "\udcff\n"])
def test_missing_or_damaged_rows_are_refused(tmp_path: Path, start: Path, lines: str) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)
    folder.add(row(0), ANSWERS)
    folder.checkpoint(0)
    (tmp_path / "run" / "rows.jsonl").write_text(lines, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(Damaged, match=r"rows\.jsonl .*remove .* to run it again"):
        RunFolder(tmp_path / "run", "abc").begin(start)


def test_opening_a_run_folder_creates_no_files(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run", "abc")
    RunFolder(tmp_path / "run", "xyz")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_reported(tmp_path: Path, start: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run", "abc")
    folder.begin(start)

    def full(*_: object, **__: object) -> None:
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device")])

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(BadInput, match="is full"):
        folder.checkpoint(0)
    assert RunFolder(tmp_path / "run", "abc").last_step == -1
