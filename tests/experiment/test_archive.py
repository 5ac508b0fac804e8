"""Archives are lossless, reproducible and verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.errors import BadInput, Damaged
from siesta.experiment.archive import ARCHIVE_FILE, archive_run, prediction_reader, read_archive
from siesta.experiment.run_folder import RunFolder, read_predictions, read_rows
from tests.experiment.written_runs import write_run


def test_an_archive_is_lossless(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy")
    size = archive_run(run, tmp_path / "kept" / run.name)
    kept = tmp_path / "kept" / run.name
    assert {file.name for file in kept.iterdir()} == {"rows.jsonl", ARCHIVE_FILE}
    assert size == sum(file.stat().st_size for file in kept.iterdir())
    assert read_rows(kept) == read_rows(run)
    answers = prediction_reader(kept)
    for row in read_rows(run):
        stored, live = answers(row["step"], row["phase"]), read_predictions(run, row["step"], row["phase"])
        assert stored.keys() == live.keys()
        for name, array in live.items():
            np.testing.assert_array_equal(stored[name], array)
            assert stored[name].dtype == array.dtype


def test_the_same_run_gives_the_same_bytes_and_an_archive_of_an_archive_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy")
    first, second = tmp_path / "a" / "run", tmp_path / "b" / "run"
    archive_run(run, first)
    archive_run(run, first)  # in place of what is there
    archive_run(first, second)
    assert (first / ARCHIVE_FILE).read_bytes() == (second / ARCHIVE_FILE).read_bytes()


@given(st.lists(st.integers(0, 99), min_size=1, unique=True), st.sampled_from([3, 40_000]), st.integers(0, 2**32 - 1))
def test_any_predictions_survive_archiving(
    tmp_path_factory: pytest.TempPathFactory, samples: list[int], classes: int, seed: int
) -> None:
    rng, tmp_path = np.random.default_rng(seed), tmp_path_factory.mktemp("run")
    folder = RunFolder(tmp_path / "run", "x")
    arrays = {
        "samples": np.sort(np.array(samples, dtype=np.int32)),
        "truth": rng.integers(0, classes, len(samples)).astype(np.int32),
        "top": rng.integers(-1, classes, (len(samples), 5)).astype(np.int32),
        "new_classes": np.unique(rng.integers(0, classes, 4)).astype(np.int32),
    }
    folder.add({"step": 0, "phase": "after"}, arrays)
    folder.finish()
    archive_run(tmp_path / "run", tmp_path / "kept")
    stored = read_archive(tmp_path / "kept" / ARCHIVE_FILE)[0, "after"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(stored[name], array)


def test_an_unfinished_run_cannot_be_archived(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy", done=False)
    with pytest.raises(BadInput, match="is not finished"):
        archive_run(run, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_unsorted_samples_cannot_be_archived(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", "x")
    some = np.array([2, 1], dtype=np.int32)
    folder.add(
        {"step": 0, "phase": "after"},
        {"samples": some, "truth": some, "top": np.ones((2, 5), dtype=np.int32), "new_classes": some},
    )
    folder.finish()
    with pytest.raises(BadInput, match="cannot be archived"):
        archive_run(tmp_path / "run", tmp_path / "kept")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy")
    archive_run(run, tmp_path / "kept")
    file = tmp_path / "kept" / ARCHIVE_FILE
    with pytest.raises(Damaged, match=r"predictions\.npz lacks step 9 after sleep"):
        prediction_reader(tmp_path / "kept")(9, "after")
    whole = file.read_bytes()
    for broken in (whole[:-30], b"nothing", whole[:60] + b"\0" * 200 + whole[260:]):
        file.write_bytes(broken)
        with pytest.raises(Damaged, match=r"predictions\.npz is damaged"):
            read_archive(file)
    np.savez_compressed(file, samples=np.arange(3))
    with pytest.raises(Damaged, match=r"predictions\.npz is damaged"):
        read_archive(file)


def test_a_damaged_file_of_a_live_run_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "toy")
    file = run / "predictions" / "00-after.npz"
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(Damaged, match=r"00-after\.npz is damaged"):
        prediction_reader(run)(0, "after")
