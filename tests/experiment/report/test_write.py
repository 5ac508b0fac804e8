"""Reports on disk, and their reproducibility."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.experiment.report import archive_runs, read_results, write_report
from tests.experiment.written_runs import write_run


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_requested_files_are_written(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    results = read_results([tmp_path / "toy"])
    assert write_report(results) == []
    to = tmp_path / "report"
    files = write_report(results, to / "r.html", tables=to / "r.md", figures=to / "figures")
    assert {str(file.relative_to(to)) for file in files} == set(everything(to))
    names = {file.name for file in files if file.parent.name == "figures"}
    assert "cub200_224_px-class_incremental-against-updates.pdf" in names
    assert len(names) == 2 * (2 + 2 + 3 + 2)


def test_archive_and_another_process_give_the_same_bytes(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", "ncm", steps=1)
    write_run(tmp_path / "toy", "slda", steps=1)
    archive_runs([tmp_path / "toy"], tmp_path / "kept")
    here, there = tmp_path / "here", tmp_path / "there"
    write_report(read_results([tmp_path / "toy"]), here / "r.html", tables=here / "r.md", figures=here / "f")
    script = (
        "import sys; from pathlib import Path; from siesta.experiment.report import read_results, write_report;"
        "to = Path(sys.argv[2]);"
        "write_report(read_results([Path(sys.argv[1])]), to / 'r.html', tables=to / 'r.md', figures=to / 'f')"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "kept"), str(there)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"})
    assert everything(here) == everything(there)


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        write_report(read_results([tmp_path / "toy"]), tmp_path / "file" / "r.html")
