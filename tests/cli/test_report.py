"""`siesta report` and `siesta archive`, as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from siesta.cli.app import app
from siesta.errors import SiestaError
from tests.experiment.written_runs import write_run


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "toy")
    write_run(tmp_path / "toy", "ncm", done=False)
    return tmp_path / "toy"


def test_a_page_tables_and_figures(out: Path, tmp_path: Path) -> None:
    done = run("report", out, "--markdown", "r.md", "--figures", "figures")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:2] == ["report.html", "r.md"]
    assert "not finished" in done.stderr
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "r.md").read_text().startswith("# siesta")
    assert {file.suffix for file in (tmp_path / "figures").iterdir()} == {".svg", ".pdf"}


def test_a_report_on_an_archive_equals_that_on_its_runs(out: Path, tmp_path: Path) -> None:
    done = run("archive", out, "--out", "results/birds")
    assert done.exit_code == 0
    assert done.stdout.startswith("results/birds/toy/siesta-class_incremental-0  ")
    assert "ncm" not in done.stdout
    run("report", "results/birds", "--out", "kept.html")
    (out / "runs" / "ncm-class_incremental-0").rename(tmp_path / "elsewhere")
    run("report", out, "--out", "live.html")
    assert (tmp_path / "kept.html").read_bytes() == (tmp_path / "live.html").read_bytes()


@pytest.mark.parametrize(("folder", "code"), [("nowhere", 3), (".", 4)])
def test_errors_are_one_sentence(out: Path, folder: str, code: int) -> None:
    (out / "runs" / "siesta-class_incremental-0" / "predictions" / "00-after.npz").unlink()
    with pytest.raises(SiestaError) as caught:
        run("report", folder)
    assert caught.value.exit_code == code
    assert "\n" not in str(caught.value)
