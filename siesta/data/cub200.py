"""CUB-200-2011, two hundred species of birds."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["cub200"]

_EXPECTED = (
    "the official archive (images.txt, image_class_labels.txt, train_test_split.txt, classes.txt, images/) "
    "or train/<class>/*.jpg and test/<class>/*.jpg"
)
_IN_TEST, _IN_TRAIN = "0", "1"  # values in train_test_split.txt


def cub200(path: Path) -> Dataset:
    """Read the official archive, or folders `train` and `test` made of it; names of images are equal in both."""
    folder = DatasetFolder("cub200", path, _EXPECTED)
    if folder.exists("CUB_200_2011"):
        folder = DatasetFolder("cub200", path / "CUB_200_2011", _EXPECTED)
    if folder.first_existing("images.txt", "train") == "images.txt":
        return _from_lists(folder)
    return _from_folders(folder)


def _from_folders(folder: DatasetFolder) -> Dataset:
    train, test = (_without_prefix(folder.class_files(part), part) for part in ("train", "test"))
    return folder.dataset_of_classes(train, test, ("train", "test"))


def _without_prefix(class_files: dict[str, list[str]], part: str) -> dict[str, list[str]]:
    return {label: [name.removeprefix(f"{part}/") for name in names] for label, names in class_files.items()}


def _from_lists(folder: DatasetFolder) -> Dataset:
    ids = {name: picture_id for picture_id, name in folder.read_pairs("images.txt")}
    class_of = dict(folder.read_pairs("image_class_labels.txt"))
    part_of = dict(folder.read_pairs("train_test_split.txt"))
    class_names = dict(folder.read_pairs("classes.txt"))
    labels = {class_id: label for label, class_id in enumerate(class_names)}
    parts: dict[str, tuple[list[str], list[int]]] = {_IN_TEST: ([], []), _IN_TRAIN: ([], [])}
    for name, picture_id in sorted(ids.items()):
        if part_of.get(picture_id) not in parts or class_of.get(picture_id) not in labels:
            raise folder.error(f"the lists in {folder.root} do not give class and part of {name}")
        part_names, part_labels = parts[part_of[picture_id]]
        part_names.append(name)
        part_labels.append(labels[class_of[picture_id]])
    return Dataset(
        folder.name,
        tuple(class_names.values()),
        folder.make_split(*parts[_IN_TRAIN], "images"),
        folder.make_split(*parts[_IN_TEST], "images"),
    )
