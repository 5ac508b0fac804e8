"""Places365-Standard, tested on its validation pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.layout import Layout

__all__ = ["places365"]

_EXPECTED = (
    "train/<class>/*.jpg and val/<class>/*.jpg (the easy format), or the official lists "
    "(categories_places365.txt, places365_train_standard.txt, places365_val.txt, here or in "
    "filelist_places365-standard/) with data_256/ and val_256/ or data_large/ and val_large/"
)
_LISTS = "filelist_places365-standard"


def places365(path: Path) -> Dataset:
    """Reads the easy format or the official lists; classes have the same names in both, such as `arena-hockey`."""
    layout = Layout("places365", path, _EXPECTED)
    found = layout.first_of("train", "categories_places365.txt", f"{_LISTS}/categories_places365.txt")
    if found != "train":
        return _lists(layout, Path(found).parent)
    train = layout.tree("train")
    classes = layout.learned_classes(train)
    return Dataset(layout.name, classes, layout.split_of(train, classes), layout.split_of(layout.tree("val"), classes))


def _lists(layout: Layout, lists: Path) -> Dataset:
    classes = _categories(layout, str(lists / "categories_places365.txt"))
    size = layout.first_of("data_256_standard", "data_256", "data_large_standard", "data_large")
    val = "val_256" if size.startswith("data_256") else "val_large"
    train = _listed(layout, str(lists / "places365_train_standard.txt"), size, classes)
    return Dataset(layout.name, classes, train, _listed(layout, str(lists / "places365_val.txt"), val, classes))


def _categories(layout: Layout, file: str) -> tuple[str, ...]:
    """`/b/bus_station/indoor 71` -> `bus_station-indoor`, in the order of the numbers."""
    pairs = layout.pairs(file)
    names = {layout.number(number, len(pairs), file): name for name, number in pairs}
    if len(names) < len(pairs):
        raise layout.wrong(f"{file} gives a number twice")
    return tuple("-".join(names[number].strip("/").split("/")[1:]) for number in range(len(pairs)))


def _listed(layout: Layout, file: str, folder: str, classes: Sequence[str]) -> Split:
    pairs = sorted(layout.pairs(file))
    names = [f"{folder}/{name.lstrip('/')}" for name, _ in pairs]
    return layout.split(names, [layout.number(number, len(classes), file) for _, number in pairs])
