"""ImageNet-1K (ILSVRC-2012), tested on its validation pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.layout import Layout

__all__ = ["imagenet"]


def imagenet(path: Path, *, class_order: Path | None = None, val_labels: Path | None = None) -> Dataset:
    """Reads `train/<wnid>/*.JPEG` and `val/<wnid>/*.JPEG`, or the flat `val/*.JPEG` with a file of labels.

    Args:
        path: The folder that has `train` and `val`.
        class_order: A file of all wnids, one a line, in the order in which they come; else they are sorted.
        val_labels: Labels of a flat `val`. A line is a wnid, for the pictures in sorted order, or a picture and its
            wnid or its class's index among the sorted wnids. Kaggle's `LOC_val_solution.csv` can be read, too.
    """
    layout = Layout("imagenet", path, "train/<wnid>/*.JPEG and val/<wnid>/*.JPEG")
    train = layout.tree("train")
    wnids = layout.learned_classes(train)
    classes = _ordered(layout, wnids, class_order) if class_order else wnids
    if val_labels:
        test = _flat(layout, val_labels, wnids, classes)
    elif layout.has("val") and layout.files("val"):
        raise layout.wrong("val/ has no folders: give the file of its labels as the option val_labels")
    else:
        test = layout.split_of(layout.tree("val"), classes)
    return Dataset(layout.name, classes, layout.split_of(train, classes), test)


def _ordered(layout: Layout, wnids: Sequence[str], file: Path) -> tuple[str, ...]:
    order = tuple(layout.lines(file.absolute()))
    if len(set(order)) < len(order):
        raise layout.wrong(f"{file} names a class twice")
    for label in order:
        if label not in set(wnids):
            raise layout.wrong(f"{file} names {label}, which has no folder in train/")
    if len(order) < len(wnids):
        raise layout.wrong(f"{file} names {len(order)} classes and train/ has {len(wnids)}")
    return order


def _flat(layout: Layout, file: Path, wnids: Sequence[str], classes: Sequence[str]) -> Split:
    numbers = {label: number for number, label in enumerate(classes)}
    names = layout.files(layout.first_of("val"))
    lines = [re.split(r"[,\s]+", line) for line in layout.lines(file.absolute())]
    if lines and lines[0][0] == "ImageId":  # the head of Kaggle's table
        del lines[0]
    if len(lines) != len(names):
        raise layout.wrong(f"{file} has {len(lines)} labels and val/ has {len(names)} pictures")
    if all(len(words) == 1 for words in lines):
        lines = [[name, *words] for name, words in zip(names, lines, strict=True)]
    labels = {Path(words[0]).stem: words[1] for words in lines if len(words) > 1}
    found = []
    for name in names:
        label = labels.get(Path(name).stem, "")
        label = wnids[layout.number(label, len(wnids), str(file))] if label.isdigit() else label
        if label not in numbers:
            raise layout.wrong(f"{file} has no label for {name} that train/ has")
        found.append(numbers[label])
    return layout.split(names, found)
