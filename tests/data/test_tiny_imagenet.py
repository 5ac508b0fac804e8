"""Tiny-ImageNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import WNIDS, tiny_imagenet, write


def test_annotations_label_the_validation_pictures(tmp_path: Path) -> None:
    dataset = load_dataset("tiny_imagenet", tiny_imagenet(tmp_path))
    assert dataset.classes == WNIDS
    assert dataset.train.names[0] == "train/n001/images/n001_train_0.JPEG" and len(dataset.train) == 12
    assert dataset.test.names[1] == "val/images/val_1.JPEG" and dataset.test.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert load_dataset("tiny_imagenet", tmp_path / "tiny-imagenet-200").fingerprint == dataset.fingerprint


def test_classes_can_be_named_by_their_first_word(tmp_path: Path) -> None:
    dataset = load_dataset("tiny_imagenet", tiny_imagenet(tmp_path), words=True)
    assert dataset.classes == ("crane (n001)", "goldfish", "crane (n003)")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["val_0.JPEG\tn009\t0\t0\t1\t1"], "no class of train/"),
        (["val_0.JPEG n001"], "no class of train/"),
        (["gone.JPEG\tn001"], "no image .*val/images/gone.JPEG"),
        ([], "there are no images"),
    ],
)
def test_wrong_annotations_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    write(tiny_imagenet(tmp_path) / "tiny-imagenet-200" / "val" / "val_annotations.txt", *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("tiny_imagenet", tmp_path)


@pytest.mark.parametrize("missing", ["val/val_annotations.txt", "train/n002/images"])
def test_a_missing_file_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    (tiny_imagenet(tmp_path) / "tiny-imagenet-200" / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=missing):
        load_dataset("tiny_imagenet", tmp_path)
