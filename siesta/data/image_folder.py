"""Folders of classes, as many people have them: `train/` and `test/` or `val/`."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.layout import Layout

__all__ = ["image_folder"]


def image_folder(path: Path, *, test: str = "") -> Dataset:
    """Reads `train/<class>/<picture>` and `test/<class>/<picture>` or `val/<class>/<picture>`.

    Args:
        path: The folder that has them.
        test: Folder to test on; `test` if there is one and else `val`.
    """
    layout = Layout("image_folder", path, "train/<class>/<picture>.jpg and test/ or val/ of the same shape")
    train = layout.tree("train")
    classes = layout.learned_classes(train)
    asked = layout.tree(layout.first_of(test) if test else layout.first_of("test", "val"))
    return Dataset(layout.name, classes, layout.split_of(train, classes), layout.split_of(asked, classes))
