"""`siesta new` and `siesta learn`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from tests.cli.conftest import ODD_FOLDERS
from tests.cli.running import assert_refused, interrupt, result_of, run

MakePictures = Callable[..., Path]


def test_new_prints_what_it_created(tmp_path: Path) -> None:
    info = result_of("new", tmp_path / "a.siesta", "--memory", "1MB", "--image-size", "32")
    assert info["classes"] == []
    assert info["bytes"]["allowed"] == 1_000_000
    assert info["backbone"]["image_size"] == 32
    assert info["samples"] == {"stored": 0, "capacity": 1_000_000 // info["bytes"]["a_sample"]}
    path = tmp_path / "my [b]irds"
    done = run("new", path, "--image-size", "32")
    assert done.returncode == 0
    assert f"Created {path} with room for" in done.stdout


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("exists already", []),
        ("no backbone 'resnet'.*efficientnet_lite0", ["--backbone", "resnet"]),
        ("no cut after 99", ["--cut", "99"]),
        ("--base", ["--cut", "3"]),
        ("not a size", ["--memory", "lots"]),
        ("not a size", ["--memory", "-5"]),
        ("at least", ["--memory", "10"]),
        ("32", ["--image-size", "16"]),
        ("-1", ["--image-size", "-1"]),
        ("no space 'outer'.*linear_centred", ["--space", "outer"]),
        ("not a folder", ["--base", "nowhere"]),
        ("seed", ["--seed", "-1"]),
        ("codec opq has no option 'books'", ["--codec-option", "books=32"]),
        ("multiple of 32 channels", ["--codec-option", "codebooks=32"]),
        ("codebooks 16.*--base", ["--codec-option", "codebooks=16"]),
        ("name=value", ["--codec-option", "codebooks"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_new_refuses_and_leaves_nothing(empty_learner: Path, tmp_path: Path, pattern: str, options: list[str]) -> None:
    path = tmp_path / "new.siesta" if options else empty_learner
    assert_refused(3, pattern, "new", path, *options)
    assert list(tmp_path.iterdir()) == []


def test_new_refuses_a_learner_in_memory() -> None:
    assert_refused(3, "give a folder instead", "new", ":memory:")


def test_new_names_the_tensors_of_a_weights_file_that_it_did_not_use(tmp_path: Path) -> None:
    base, file = tmp_path / "base", tmp_path / "weights.safetensors"
    base.mkdir()
    for seed in range(8):
        pixels = np.random.default_rng(seed).integers(0, 255, (96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(base / f"{seed}.png")
    save_checkpoint(make_backbone("mobilenet_v2", weights=RANDOM), file)
    save_file({**load_file(file), "fc[red]": torch.zeros(2)}, file)
    options = ["--backbone", "mobilenet_v2", "--weights", str(file), "--base", str(base), "--image-size", "96"]
    done = run("new", tmp_path / "x.siesta", *options)
    assert (done.returncode, done.stderr) == (0, f"not used: fc[red] of {file}\n")
    backbone = result_of("info", tmp_path / "x.siesta")["backbone"]
    assert backbone["weights"] == {"from": "weights.safetensors", "ignored": ["fc[red]"]}


def test_learn_counts_images_and_skips_known_ones(
    empty_copy: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren", "tit"], each=5)
    learned = result_of("learn", empty_copy, folder)
    samples = learned.pop("samples")
    assert learned == {"learned": 15, "known": 0, "unreadable": 0, "ignored": 0, "skipped": []}
    assert sorted(samples.values()) == list(range(1, 16)) and set(map(Path, samples)) == set(folder.rglob("*.png"))
    again = result_of("learn", empty_copy, folder)
    assert again == {"learned": 0, "known": 15, "unreadable": 0, "ignored": 0, "skipped": [], "samples": samples}
    assert "Learned 0 images; 15 were known already, 0 could not be read" in run("learn", empty_copy, folder).stdout


def test_learn_takes_odd_labels_and_file_names_literally(
    empty_copy: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", ODD_FOLDERS, each=1)
    (folder / ODD_FOLDERS[0] / "[red]notes.txt").write_text("no picture")
    done = run("learn", empty_copy, folder)
    assert done.returncode == 0
    assert "ignored, not an image: " in done.stderr and "[red]notes.txt\n" in done.stderr
    assert "Learned 4 images" in done.stdout


def test_learn_lists_unreadable_images_and_learns_the_rest(
    empty_copy: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren"], each=2)
    broken = folder / "robin" / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 not really")
    result = result_of("learn", empty_copy, folder, code=6)
    assert (result["learned"], result["known"], result["unreadable"]) == (4, 0, 1)
    assert len(result["skipped"]) == 1
    assert str(broken) in result["skipped"][0]


def test_learn_keeps_what_it_learned_before_ctrl_c(
    empty_copy: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", [f"class {number}" for number in range(4)], each=100)
    code, _, shown = interrupt(
        "learn", empty_copy, folder, when=lambda text: re.search(r"(?<!\d)[1-9]\d*/400", text) is not None
    )
    assert code == 130, shown
    stopped = re.search(r"at least (\d+) images are learned and stored. Run the command again to continue", shown)
    assert stopped is not None, shown
    known = sum(entry["taught"] for entry in result_of("info", empty_copy)["classes"])
    assert 0 < int(stopped[1]) <= known < 400
    result = result_of("learn", empty_copy, folder)
    assert (result["known"], result["learned"]) == (known, 400 - known)
    assert all(entry["taught"] == 100 for entry in result_of("info", empty_copy)["classes"])
