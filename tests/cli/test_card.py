"""`siesta card`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import assert_refused, result_of, run
from tests.learner.test_card import taught


def test_a_card_is_written(tmp_path: Path) -> None:
    path, file = tmp_path / "x.siesta", tmp_path / "x.html"
    taught(path, 1)
    assert result_of("card", path, "--out", file) == {"bytes": file.stat().st_size}
    assert file.read_text("utf-8").startswith("<!doctype html>")
    said = run("card", path, "--out", file)
    assert said.returncode == 0 and f"Wrote {file}" in said.stdout.replace("\n", "")
    assert_refused(3, "nothing", "card", tmp_path / "nothing", "--out", file)
