"""ImageNet-1K."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import TRAIN, WNIDS, folders, imagenet, picture, write

ORDER = ("n003", "n001", "n002")


def labelled(names: object, labels: object, classes: tuple[str, ...]) -> dict[str, str]:
    return {n: classes[y] for n, y in zip(names, labels, strict=True)}  # type: ignore[call-overload]


def flat(root: Path) -> list[str]:
    folders(root, "train", WNIDS, TRAIN)
    return [picture(root / "val" / f"ILSVRC2012_val_{n:08}.JPEG") for n in range(1, 7)]


def test_the_order_file_decides_the_order_of_classes(tmp_path: Path) -> None:
    write(tmp_path / "order.txt", *ORDER)
    dataset = load_dataset("imagenet", imagenet(tmp_path / "in"), class_order=tmp_path / "order.txt")
    assert dataset.classes == ORDER
    for split in (dataset.train, dataset.test):
        assert all(f"/{wnid}/" in name for name, wnid in labelled(split.names, split.labels, ORDER).items())
    assert load_dataset("imagenet", tmp_path / "in").classes == WNIDS


def test_the_path_of_an_order_file_is_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "order.txt", *ORDER)
    imagenet(tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("imagenet", "in", class_order="order.txt").classes == ORDER


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["n001", "n002", "n003", "n001"], "names a class twice"),
        (["n001", "n002", "n003", "n004"], "names n004, which has no folder"),
        (["n001"], "names 1 classes and train/ has 3"),
    ],
)
def test_wrong_order_files_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    write(tmp_path / "order.txt", *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("imagenet", imagenet(tmp_path), class_order=tmp_path / "order.txt")


@pytest.mark.parametrize("form", ["wnids", "pairs", "numbers", "kaggle"])
def test_labels_of_a_flat_val_are_read_in_four_formats(tmp_path: Path, form: str) -> None:
    names = flat(tmp_path)
    wnids = [WNIDS[n // 2] for n in range(6)]
    lines = {
        "wnids": wnids,
        "pairs": [f"{n} {w}" for n, w in zip(names, wnids, strict=True)][::-1],
        "numbers": [f"{n} {WNIDS.index(w)}" for n, w in zip(names, wnids, strict=True)],
        "kaggle": ["ImageId,PredictionString", *(f"{n[:-5]},{w} 1 2 3 4" for n, w in zip(names, wnids, strict=True))],
    }
    write(tmp_path / "labels.txt", *lines[form])
    write(tmp_path / "order.txt", *ORDER)
    options: dict[str, Any] = {"val_labels": tmp_path / "labels.txt", "class_order": tmp_path / "order.txt"}
    test = load_dataset("imagenet", tmp_path, **options).test
    assert labelled(test.names, test.labels, ORDER) == {f"val/{n}": w for n, w in zip(names, wnids, strict=True)}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["n001"] * 5, "has 5 labels and val/ has 6 images"),
        (["n001"] * 7, "has 7 labels and val/ has 6 images"),
        (["n009"] * 6, "no label for val/ILSVRC2012_val_00000001.JPEG"),
        ([f"ILSVRC2012_val_{n:08}.JPEG 3" for n in range(1, 7)], "'3' where a number below 3"),
        ([f"other_{n}.JPEG n001" for n in range(6)], "no label for"),
        (["n001"] * 5 + ["ILSVRC2012_val_00000006.JPEG n001"], "no label for"),
    ],
)
def test_wrong_labels_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    flat(tmp_path)
    write(tmp_path / "labels.txt", *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("imagenet", tmp_path, val_labels=tmp_path / "labels.txt")


def test_a_flat_val_without_labels_is_refused(tmp_path: Path) -> None:
    flat(tmp_path)
    with pytest.raises(BadInput, match="as the option val_labels"):
        load_dataset("imagenet", tmp_path)


def test_the_published_class_order_is_read(shared_data: Path, tmp_path: Path) -> None:
    wnids = (shared_data / "imagenet_class_order.txt").read_text().split()
    for wnid in wnids:
        for part in ("train", "val"):
            (tmp_path / part / wnid).mkdir(parents=True)
            (tmp_path / part / wnid / f"{wnid}_1.JPEG").touch()
    dataset = load_dataset("imagenet", tmp_path, class_order=shared_data / "imagenet_class_order.txt")
    assert len(dataset.classes) == 1000 and list(dataset.classes) == wnids
    assert len(load_dataset("imagenet", tmp_path, classes=300).train) == 300
