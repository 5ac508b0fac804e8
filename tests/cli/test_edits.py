"""`siesta rename`, `merge`, `forget`, `correct` and `refit`: what they print, and that they reach the learner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from tests.cli.running import assert_refused, result_of, run


@pytest.fixture
def birds(empty_copy: Path, tmp_path: Path, make_pictures: Callable[..., Path]) -> Path:
    """A learner with two samples each of robin (ids 1 and 2) and wren (3 and 4)."""
    make_pictures(tmp_path / "photos", ["robin", "wren"], each=2)
    assert sorted(result_of("learn", empty_copy, tmp_path / "photos")["samples"].values()) == [1, 2, 3, 4]
    return empty_copy


def stored(path: Path) -> dict[str, int]:
    return {entry["label"]: entry["stored"] for entry in result_of("info", path)["classes"]}


def test_rename_gives_a_class_another_label(birds: Path) -> None:
    assert result_of("rename", birds, "robin", "[red] robin") == {"label": "robin", "to": "[red] robin"}
    assert stored(birds) == {"[red] robin": 2, "wren": 2}
    assert run("rename", birds, "[red] robin", "robin").stdout == "Renamed '[red] robin' to 'robin'.\n"
    assert_refused(3, "no class 'tit'", "rename", birds, "tit", "great tit")


def test_merge_moves_all_samples_to_the_remaining_class(birds: Path) -> None:
    assert run("merge", birds, "robin", "wren").stdout == "Merged 'robin' into 'wren'.\n"
    assert stored(birds) == {"wren": 4}


def test_forget_deletes_a_class_or_a_sample(birds: Path) -> None:
    assert result_of("forget", birds, "--sample", "1") == {"label": None, "sample": 1}
    assert stored(birds) == {"robin": 1, "wren": 2}
    assert run("forget", birds, "robin").stdout == "Forgot class 'robin'.\n"
    assert stored(birds) == {"wren": 2}


@pytest.mark.parametrize("arguments", [[], ["robin", "--sample", "1"]])
def test_forget_refuses_neither_and_both(taught_learner: Path, arguments: list[str]) -> None:
    assert_refused(3, "give either a class label or --sample", "forget", taught_learner, *arguments)


def test_correct_relabels_a_sample_under_a_new_id(birds: Path) -> None:
    assert result_of("correct", birds, "2", "wren") == {"sample": 2, "label": "wren", "new": 5}
    assert stored(birds) == {"robin": 1, "wren": 3}
    assert run("correct", birds, "5", "robin").stdout == "Relabelled sample 5 as 'robin'; its new id is 6.\n"


def test_refit_fits_the_codec_to_a_folder(birds: Path, tmp_path: Path, make_pictures: Callable[..., Path]) -> None:
    make_pictures(tmp_path / "more", ["robin"], each=64, seed=1)
    for file in (tmp_path / "photos" / "wren").iterdir():
        file.rename(tmp_path / "more" / "robin" / f"wren-{file.name}")  # known under another label and name only
    done = run("refit", birds, "--base", tmp_path / "more")
    assert done.returncode == 0, done.stderr
    assert "0 samples were encoded again from their images; 4 were converted" in done.stdout
    assert stored(birds) == {"robin": 2, "wren": 2}


def test_reject_takes_every_row_of_a_file_of_vectors(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "v", features=3, memory="1MB") as learner:
        learner.learn_many([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], ["x", "y"])
    np.save(tmp_path / "rows.npy", np.eye(3, dtype=np.float32)[1:])
    assert result_of("reject", tmp_path / "v", tmp_path / "rows.npy", "x") == {"ids": [3, 4], "label": "x"}


def test_reject_prints_an_id_that_forget_takes_back(birds: Path, tmp_path: Path) -> None:
    image = next((tmp_path / "photos" / "robin").iterdir())
    assert result_of("reject", birds, image, "robin") == {"ids": [5], "label": "robin"}
    assert run("reject", birds, image, "robin").stdout == f"Rejected 'robin' for {image}; to forget: 5.\n"
    assert result_of("info", birds)["rejections"] == {"5": "robin"}
    assert result_of("forget", birds, "--sample", "5")["sample"] == 5
    assert result_of("info", birds)["rejections"] == {}
    assert_refused(3, "no class 'tit'", "reject", birds, image, "tit")
