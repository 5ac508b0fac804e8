"""`siesta predict`, `siesta eval` and `siesta info`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from siesta.learner import Siesta
from tests.cli.conftest import ODD_FOLDERS, ODD_LABELS
from tests.cli.running import assert_refused, result_of, run

MakePictures = Callable[..., Path]


def teach(path: Path, folder: Path) -> None:
    assert run("learn", path, folder).returncode == 0


def test_predict_ranks_labels_for_each_image(empty_copy: Path, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren", "tit"], each=3)
    teach(empty_copy, folder)
    images = [folder / "robin" / "0.png", folder / "wren" / "1.png"]
    answers = result_of("predict", empty_copy, *images, "--top", "2")
    assert [answer["image"] for answer in answers] == [str(file) for file in images]
    assert [answer["label"] for answer in answers] == ["robin", "wren"]
    assert all(answer["known"] and len(answer["top"]) == 2 for answer in answers)
    assert all(1 >= answer["top"][0]["score"] >= answer["top"][1]["score"] >= 0 for answer in answers)
    assert run("predict", empty_copy, images[0]).stdout.startswith(f"{images[0]}: robin ")


def test_predict_answers_unknown_below_the_threshold(taught_learner: Path, image: Path) -> None:
    (answer,) = result_of("predict", taught_learner, image, "--threshold", "1")
    assert (answer["label"], answer["known"]) == ("unknown", False)
    done = run("predict", taught_learner, image, "--threshold", "1")
    assert f"{image}: unknown (familiarity {100 * answer['familiarity']:.1f} %; best guess: " in done.stdout
    assert f"best guess: {answer['top'][0]['label']} " in done.stdout


def test_predict_skips_unreadable_images(taught_learner: Path, image: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 not really")
    (answer,) = result_of("predict", taught_learner, broken, image, tmp_path / "missing.png", code=6)
    assert answer["image"] == str(image)
    assert_refused(3, r"broken\.jpg is not a readable image", "predict", taught_learner, broken)


def test_predict_refuses_an_untaught_learner_and_zero_answers(
    empty_learner: Path, taught_learner: Path, image: Path
) -> None:
    assert_refused(3, "predict|taught|learn", "predict", empty_learner, image)
    assert_refused(3, "at least one", "predict", taught_learner, image, "--top", "0")


def test_labels_are_printed_literally(taught_learner: Path, image: Path, tmp_path: Path) -> None:
    labels = [label.strip() for label in ODD_LABELS]
    shown = run("info", taught_learner)
    assert shown.returncode == 0
    assert all(label in shown.stdout for label in labels)
    assert {entry["label"] for entry in result_of("info", taught_learner)["classes"]} == set(labels)
    predicted = run("predict", taught_learner, image, "--top", "9")
    assert all(label in predicted.stdout for label in labels)
    for label in [*ODD_FOLDERS, "[bold]never taught"]:
        (tmp_path / "test" / label).mkdir(parents=True)
        shutil.copy(image, tmp_path / "test" / label / "1.png")
    scores = run("eval", taught_learner, tmp_path / "test")
    assert scores.returncode == 0
    assert all(label.strip() in scores.stdout for label in ODD_FOLDERS)
    assert "[bold]never taught" in scores.stderr.replace("\n", "")


def test_eval_measures_each_class_and_all(empty_copy: Path, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren"], each=3)
    teach(empty_copy, folder)
    (folder / "robin" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not really")
    scores = result_of("eval", empty_copy, folder, code=6)
    assert (scores["n"], scores["top1"], scores["top5"]) == (6, 100, 100)
    assert scores["per_class"].keys() == {"robin", "wren"}
    assert "threshold" not in scores
    assert re.search(r"all\W+6\W+100\.0", run("eval", empty_copy, folder).stdout)


def test_eval_with_a_threshold_counts_rejected_images(taught_learner: Path, image: Path, tmp_path: Path) -> None:
    (tmp_path / "test" / "[red]").mkdir(parents=True)
    shutil.copy(image, tmp_path / "test" / "[red]" / "1.png")
    scores = result_of("eval", taught_learner, tmp_path / "test", "--threshold", "1")
    assert scores["threshold"] == 1 and scores["unknown"]["taught_rejected"] == 100
    done = run("eval", taught_learner, tmp_path / "test", "--threshold", "1")
    assert (
        "Images with a familiarity below 1.000 are answered 'unknown': 100.0 % of 1 images of learned classes"
        in done.stdout
    )


def test_info_shows_classes_memory_and_sleeps(empty_copy: Path, tmp_path: Path, make_pictures: MakePictures) -> None:
    teach(empty_copy, make_pictures(tmp_path / "photos", ["robin", "wren"], each=2))
    with Siesta.open(empty_copy) as learner:
        learner.sleep(updates=4, batch_size=2)
    info = result_of("info", empty_copy)
    assert {entry["label"]: (entry["taught"], entry["stored"]) for entry in info["classes"]} == dict.fromkeys(
        ("robin", "wren"), (2, 2)
    )
    assert info["bytes"]["used"] == 4 * info["bytes"]["a_sample"]
    assert info["bytes"]["on_disk"] > 10_000_000
    assert info["codec"]["name"] == "opq" and 0 < info["codec"]["relative_error"] < 1
    assert [sleep["updates"] for sleep in info["sleeps"]] == [4]
    shown = run("info", empty_copy).stdout
    assert re.search(r"robin\W+2\W+2", shown)
    assert "4 of" in shown and "efficientnet_lite0" in shown and "last: " in shown
