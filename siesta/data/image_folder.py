"""A folder of classes in the common layout: `train/` and `test/` or `val/`."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["image_folder"]


def image_folder(path: Path, *, test: str = "") -> Dataset:
    """Read `train/<class>/<image>` and `test/<class>/<image>` or `val/<class>/<image>`.

    Args:
        path: The folder that contains them.
        test: Folder to test on; `test` if it exists, otherwise `val`.
    """
    folder = DatasetFolder("image_folder", path, "train/<class>/<image>.jpg and test/ or val/ of the same layout")
    train_files = folder.class_files("train")
    test_part = folder.first_existing(test) if test else folder.first_existing("test", "val")
    return folder.dataset_of_classes(train_files, folder.class_files(test_part))
