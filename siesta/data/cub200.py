"""CUB-200-2011, two hundred kinds of birds."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.layout import Layout

__all__ = ["cub200"]

_EXPECTED = (
    "the official archive (images.txt, image_class_labels.txt, train_test_split.txt, classes.txt, images/) "
    "or train/<class>/*.jpg and test/<class>/*.jpg"
)


def cub200(path: Path) -> Dataset:
    """Reads the official archive, or folders `train` and `test` made of it; a picture's name is the same in both."""
    layout = Layout("cub200", path, _EXPECTED)
    if layout.has("CUB_200_2011"):
        layout = Layout("cub200", path / "CUB_200_2011", _EXPECTED)
    return _lists(layout) if layout.first_of("images.txt", "train") == "images.txt" else _folders(layout)


def _folders(layout: Layout) -> Dataset:
    train, test = (_without_part(layout.tree(part), part) for part in ("train", "test"))
    classes = layout.learned_classes(train)
    return Dataset(
        layout.name, classes, layout.split_of(train, classes, "train"), layout.split_of(test, classes, "test")
    )


def _without_part(tree: dict[str, list[str]], part: str) -> dict[str, list[str]]:
    return {label: [name.removeprefix(f"{part}/") for name in files] for label, files in tree.items()}


def _lists(layout: Layout) -> Dataset:
    names = {name: key for key, name in layout.pairs("images.txt")}
    numbers, in_train = dict(layout.pairs("image_class_labels.txt")), dict(layout.pairs("train_test_split.txt"))
    keys, classes = zip(*layout.pairs("classes.txt"), strict=True) if layout.lines("classes.txt") else ((), ())
    labels = {key: label for label, key in enumerate(keys)}
    parts: dict[str, tuple[list[str], list[int]]] = {"0": ([], []), "1": ([], [])}
    for name, key in sorted(names.items()):
        if in_train.get(key) not in parts or numbers.get(key) not in labels:
            raise layout.wrong(f"the lists in {layout.root} do not say all about {name}")
        files, found = parts[in_train[key]]
        files.append(name)
        found.append(labels[numbers[key]])
    return Dataset(layout.name, classes, layout.split(*parts["1"], "images"), layout.split(*parts["0"], "images"))
