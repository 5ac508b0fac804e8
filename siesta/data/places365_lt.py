"""Places365-LT, the long-tailed subset of Places365 that Liu et al. (2019) list."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from siesta.data.dataset import Dataset, Split
from siesta.data.dataset_folder import DatasetFolder
from siesta.errors import BadInput

__all__ = ["places365_lt"]

_EXPECTED = "Places_LT_train.txt and Places_LT_val.txt with the images that they name"
_TESTS = ("val", "test")


def places365_lt(path: Path, *, lists: Path | None = None, test: str = "val") -> Dataset:
    """Read `Places_LT_train.txt` and `Places_LT_val.txt`, whose lines are an image's path and its label.

    Args:
        path: The folder that the paths in the lists are relative to.
        lists: The folder of the lists; `path` when None.
        test: List to test on, `val` as in the paper (7,300 images) or `test`.
    """
    if test not in _TESTS:
        raise BadInput(f"places365_lt can be tested on {' or '.join(_TESTS)}, not '{test}'")
    folder = DatasetFolder("places365_lt", path, _EXPECTED)
    list_folder = (lists or path).absolute()
    train_pairs = _pairs(folder, list_folder / "Places_LT_train.txt")
    test_pairs = _pairs(folder, list_folder / f"Places_LT_{test}.txt")
    classes = _classes(folder, train_pairs)
    return Dataset(folder.name, classes, _split(folder, train_pairs, classes), _split(folder, test_pairs, classes))


def _pairs(folder: DatasetFolder, file: Path) -> list[tuple[str, str]]:
    return sorted((name.lstrip("/"), number) for name, number in folder.read_pairs(str(file)))


def _classes(folder: DatasetFolder, pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the classes, named after the folders of their images: `train/airfield/1.jpg 0` -> `airfield`."""
    names: dict[int, str] = {}
    for name, number in pairs:
        label = folder.parse_index(number, len(pairs), "the list of training images")
        names.setdefault(label, "-".join(PurePosixPath(name).parts[1:-1]) or number)
    if sorted(names) != list(range(len(names))):
        raise folder.error("the list of training images leaves out a class's number")
    return tuple(names[label] for label in range(len(names)))


def _split(folder: DatasetFolder, pairs: list[tuple[str, str]], classes: tuple[str, ...]) -> Split:
    labels = [folder.parse_index(number, len(classes), "a list") for _, number in pairs]
    return folder.make_split([name for name, _ in pairs], labels)
