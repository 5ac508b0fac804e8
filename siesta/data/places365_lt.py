"""Places365-LT, the long-tailed part of Places365 that Liu et al. (2019) list."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from siesta.data.dataset import Dataset, Split
from siesta.data.layout import Layout
from siesta.errors import BadInput

__all__ = ["places365_lt"]

_TESTS = ("val", "test")


def places365_lt(path: Path, *, lists: Path | None = None, test: str = "val") -> Dataset:
    """Reads `Places_LT_train.txt` and `Places_LT_val.txt`, whose lines are a picture's path and its label.

    Args:
        path: The folder that the lists' paths start from.
        lists: The folder of the lists; else they lie in `path`.
        test: List to test on, `val` as in the paper (7,300 pictures) or `test`.
    """
    if test not in _TESTS:
        raise BadInput(f"places365_lt can be tested on {' or '.join(_TESTS)}, not '{test}'")
    layout = Layout("places365_lt", path, "Places_LT_train.txt and Places_LT_val.txt with the pictures that they name")
    folder = (lists or path).absolute()
    train = _pairs(layout, folder / "Places_LT_train.txt")
    asked = _pairs(layout, folder / f"Places_LT_{test}.txt")
    classes = _classes(layout, train)
    return Dataset(layout.name, classes, _split(layout, train, classes), _split(layout, asked, classes))


def _pairs(layout: Layout, file: Path) -> list[tuple[str, str]]:
    return sorted((name.lstrip("/"), number) for name, number in layout.pairs(str(file)))


def _classes(layout: Layout, pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    """A class is named after the folder that its pictures lie in: `train/airfield/1.jpg 0` -> `airfield`."""
    names: dict[int, str] = {}
    for name, number in pairs:
        label = layout.number(number, len(pairs), "the list of training pictures")
        names.setdefault(label, "-".join(PurePosixPath(name).parts[1:-1]) or number)
    if sorted(names) != list(range(len(names))):
        raise layout.wrong("the list of training pictures leaves out a class's number")
    return tuple(names[label] for label in range(len(names)))


def _split(layout: Layout, pairs: list[tuple[str, str]], classes: tuple[str, ...]) -> Split:
    labels = [layout.number(number, len(classes), "a list") for _, number in pairs]
    return layout.split([name for name, _ in pairs], labels)
