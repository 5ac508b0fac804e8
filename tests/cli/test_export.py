"""`siesta export`."""

from __future__ import annotations

from pathlib import Path

from siesta import Siesta
from tests.cli.running import assert_refused, result_of, run
from tests.learner.colours import labelled_pictures


def test_a_learner_is_exported(tmp_path: Path) -> None:
    path, file = tmp_path / "x.siesta", tmp_path / "x.onnx"
    with Siesta.create(path, image_size=32) as learner:
        assert_refused(3, "was not taught anything yet", "export", path, "--to", file)
        learner.learn_many(*labelled_pictures(2))
    assert result_of("export", path, "--to", file) == {
        "classes": 3,
        "generation": 0,
        "bytes": file.stat().st_size,
        "rejections": 0,
    }
    said = run("export", path, "--to", file)
    assert said.returncode == 0 and "3 classes, generation 0" in said.stdout
    assert_refused(3, "does not exist: create it first", "export", path, "--to", tmp_path / "nowhere" / "x.onnx")
