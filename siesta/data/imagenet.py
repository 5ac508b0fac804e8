"""ImageNet-1K (ILSVRC-2012), tested on its validation images."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["imagenet"]


def imagenet(path: Path, *, class_order: Path | None = None, val_labels: Path | None = None) -> Dataset:
    """Read `train/<wnid>/*.JPEG` and `val/<wnid>/*.JPEG`, or a flat `val/*.JPEG` with a file of labels.

    Args:
        path: The folder that contains `train` and `val`.
        class_order: File of all wnids in the order of classes, one in each line; sorted order when None.
        val_labels: Labels of a flat `val`. A line is a wnid, for the images in sorted order, or an image and its
            wnid or its class's index among the sorted wnids. Kaggle's `LOC_val_solution.csv` is accepted, too.
    """
    folder = DatasetFolder("imagenet", path, "train/<wnid>/*.JPEG and val/<wnid>/*.JPEG")
    train_files = folder.class_files("train")
    wnids = folder.training_classes(train_files)
    classes = _ordered_classes(folder, wnids, class_order) if class_order else wnids
    if val_labels:
        test = _flat_split(folder, val_labels, wnids, classes)
    elif folder.exists("val") and folder.picture_names("val"):
        raise folder.error("val/ has no folders: give the file of its labels as the option val_labels")
    else:
        test = folder.split_of_classes(folder.class_files("val"), classes)
    return Dataset(folder.name, classes, folder.split_of_classes(train_files, classes), test)


def _ordered_classes(folder: DatasetFolder, wnids: Sequence[str], file: Path) -> tuple[str, ...]:
    order = tuple(folder.read_lines(file.absolute()))
    if len(set(order)) < len(order):
        raise folder.error(f"{file} names a class twice")
    for label in order:
        if label not in set(wnids):
            raise folder.error(f"{file} names {label}, which has no folder in train/")
    if len(order) < len(wnids):
        raise folder.error(f"{file} names {len(order)} classes and train/ has {len(wnids)}")
    return order


def _flat_split(folder: DatasetFolder, file: Path, wnids: Sequence[str], classes: Sequence[str]) -> Split:
    names = folder.picture_names(folder.first_existing("val"))
    label_of = _flat_labels(folder, file, names)
    numbers = {label: number for number, label in enumerate(classes)}
    labels = []
    for name in names:
        label = label_of.get(Path(name).stem, "")
        if label.isdigit():
            label = wnids[folder.parse_index(label, len(wnids), str(file))]
        if label not in numbers:
            raise folder.error(f"{file} has no label for {name} that train/ has")
        labels.append(numbers[label])
    return folder.make_split(names, labels)


def _flat_labels(folder: DatasetFolder, file: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the label of each image by its name without suffix."""
    rows = [re.split(r"[,\s]+", line) for line in folder.read_lines(file.absolute())]
    if rows and rows[0][0] == "ImageId":  # header of Kaggle's table
        del rows[0]
    if len(rows) != len(names):
        raise folder.error(f"{file} has {len(rows)} labels and val/ has {len(names)} images")
    if all(len(words) == 1 for words in rows):
        rows = [[name, *words] for name, words in zip(names, rows, strict=True)]
    return {Path(words[0]).stem: words[1] for words in rows if len(words) > 1}
