"""Places365-Standard, tested on its validation images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["places365"]

_EXPECTED = (
    "train/<class>/*.jpg and val/<class>/*.jpg (the easy format), or the official lists "
    "(categories_places365.txt, places365_train_standard.txt, places365_val.txt, there or in "
    "filelist_places365-standard/) with data_256/ and val_256/ or data_large/ and val_large/"
)
_LISTS = "filelist_places365-standard"
_CATEGORIES = "categories_places365.txt"


def places365(path: Path) -> Dataset:
    """Read the easy format or the official lists; classes have the same names in both, such as `arena-hockey`."""
    folder = DatasetFolder("places365", path, _EXPECTED)
    source = folder.first_existing("train", _CATEGORIES, f"{_LISTS}/{_CATEGORIES}")
    if source != "train":
        return _from_lists(folder, Path(source).parent)
    return folder.dataset_of_classes(folder.class_files("train"), folder.class_files("val"))


def _from_lists(folder: DatasetFolder, lists: Path) -> Dataset:
    classes = _categories(folder, str(lists / _CATEGORIES))
    train_folder = folder.first_existing("data_256_standard", "data_256", "data_large_standard", "data_large")
    val_folder = "val_256" if train_folder.startswith("data_256") else "val_large"
    train = _listed_split(folder, str(lists / "places365_train_standard.txt"), train_folder, classes)
    test = _listed_split(folder, str(lists / "places365_val.txt"), val_folder, classes)
    return Dataset(folder.name, classes, train, test)


def _categories(folder: DatasetFolder, file: str) -> tuple[str, ...]:
    """Return the classes in the order of their numbers: `/b/bus_station/indoor 71` -> `bus_station-indoor`."""
    pairs = folder.read_pairs(file)
    names = {folder.parse_index(number, len(pairs), file): name for name, number in pairs}
    if len(names) < len(pairs):
        raise folder.error(f"{file} gives a number twice")
    return tuple("-".join(names[number].strip("/").split("/")[1:]) for number in range(len(pairs)))


def _listed_split(folder: DatasetFolder, file: str, subfolder: str, classes: Sequence[str]) -> Split:
    pairs = sorted(folder.read_pairs(file))
    names = [f"{subfolder}/{name.lstrip('/')}" for name, _ in pairs]
    return folder.make_split(names, [folder.parse_index(number, len(classes), file) for _, number in pairs])
