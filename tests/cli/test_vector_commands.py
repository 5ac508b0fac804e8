"""Commands over vectors: new, learn, predict, eval, info, refit and export of a learner of vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import assert_refused, result_of, run

ROWS = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0) + np.linspace(0, 0.3, 20, dtype=np.float32)[:, None]


@pytest.fixture
def learner(tmp_path: Path) -> Path:
    np.savez(tmp_path / "train.npz", vectors=ROWS, labels=np.repeat(list("abcd"), 5))
    np.save(tmp_path / "test.npy", ROWS[::5] + 0.01)
    (tmp_path / "test.txt").write_text("a\nb\nc\nd\n")
    info = result_of("new", tmp_path / "x.siesta", "--features", "4", "--top-layers", "2", "--memory", "1MB")
    assert (info["backbone"]["features"], info["backbone"]["name"], info["codec"]["name"]) == (
        4,
        "vectors_2",
        "float16",
    )
    assert info["bytes"]["a_sample"] > 4 + 2 * 4
    return tmp_path / "x.siesta"


def test_a_learner_of_vectors_is_taught_asked_and_measured(learner: Path, tmp_path: Path) -> None:
    counts = result_of("learn", learner, tmp_path / "train.npz")
    assert counts["learned"] == 20 and counts["samples"][f"{tmp_path / 'train.npz'}[0]"] == 1
    assert "Learned 0 vectors; 20 were known already" in run("learn", learner, tmp_path / "train.npz").stdout
    answers = result_of("predict", learner, tmp_path / "test.npy", "--top", "1")
    assert [answer["label"] for answer in answers] == list("abcd")
    assert answers[3]["image"] == f"{tmp_path / 'test.npy'}[3]"
    assert result_of("eval", learner, tmp_path / "test.npy", "--labels", tmp_path / "test.txt")["top1"] == 100.0
    assert "vectors_2, vectors of 4 numbers" in run("info", learner).stdout
    assert run("export", learner, "--to", tmp_path / "x.onnx").returncode == 0
    assert_refused(3, "float16 is not fitted to anything", "refit", learner, "--base", tmp_path / "test.npy")


def test_rows_that_cannot_be_used_are_named_and_the_others_learned(learner: Path, tmp_path: Path) -> None:
    broken = ROWS.copy()
    broken[3, 1] = np.nan
    np.savez(tmp_path / "broken.npz", vectors=broken, labels=np.repeat(list("abcd"), 5))
    counts = result_of("learn", learner, tmp_path / "broken.npz", code=6)
    assert counts["learned"] == 19 and counts["unreadable"] == 1
    assert counts["skipped"] == [f"{tmp_path / 'broken.npz'}[3]: element 2 of the vector is nan: give finite numbers"]
    np.save(tmp_path / "some.npy", broken[3:5])
    done = run("predict", learner, tmp_path / "some.npy")
    assert done.returncode == 6 and "some.npy[0]: element 2 of the vector is nan" in done.stderr
    assert "some.npy[1]: a" in done.stdout


def test_files_of_another_kind_are_refused_in_a_sentence(learner: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "long.npy", np.zeros((2, 5)))
    assert_refused(3, "holds vectors of 5 numbers, and this learner takes 4", "predict", learner, tmp_path / "long.npy")
    assert_refused(3, "holds no labels: give a file of them", "learn", learner, tmp_path / "test.npy")
    assert_refused(3, "is a folder, and this learner takes vectors", "eval", learner, tmp_path)
    assert_refused(3, "features is 0", "new", tmp_path / "y", "--features", "0")
    assert_refused(3, "no backbone and no image size", "new", tmp_path / "y", "--features", "4", "--image-size", "32")


def test_opq_is_fitted_on_a_file_of_base_vectors(tmp_path: Path) -> None:
    np.save(tmp_path / "base.npy", np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32))
    options = ("--features", "4", "--codec", "opq", "--codec-option", "codebooks=4", "--base", tmp_path / "base.npy")
    info = result_of("new", tmp_path / "x.siesta", *options)
    assert info["codec"]["name"] == "opq" and 0 < info["codec"]["relative_error"] < 0.2
    assert info["backbone"]["space"] == "centred"
