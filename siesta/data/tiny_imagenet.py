"""Tiny-ImageNet: 200 classes of ImageNet at 64 pixels, tested on its validation images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["tiny_imagenet"]

_EXPECTED = "train/<wnid>/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt"
_FOLDER = "tiny-imagenet-200"


def tiny_imagenet(path: Path, *, words: bool = False) -> Dataset:
    """Read `train/<wnid>/images/*.JPEG`, `val/images/*.JPEG` and `val/val_annotations.txt`.

    Args:
        path: That folder, or the folder that contains `tiny-imagenet-200`.
        words: Name classes by their first word in `words.txt` instead of their wnid.
    """
    folder = DatasetFolder("tiny_imagenet", path, _EXPECTED)
    if folder.exists(_FOLDER):
        folder = DatasetFolder("tiny_imagenet", path / _FOLDER, _EXPECTED)
    train_files = folder.class_files("train", "images")
    wnids = folder.training_classes(train_files)
    classes = _class_words(folder, wnids) if words else wnids
    return Dataset(folder.name, classes, folder.split_of_classes(train_files, wnids), _val_split(folder, wnids))


def _val_split(folder: DatasetFolder, wnids: Sequence[str]) -> Split:
    """Read the annotations: lines of an image, its wnid and a box, separated by tabs."""
    numbers = {wnid: number for number, wnid in enumerate(wnids)}
    rows = sorted(line.split("\t")[:2] for line in folder.read_lines("val/val_annotations.txt"))
    for row in rows:
        if len(row) < 2 or row[1] not in numbers:
            raise folder.error(f"val/val_annotations.txt has no class of train/ in its line '{' '.join(row)[:80]}'")
    return folder.make_split([f"val/images/{name}" for name, _ in rows], [numbers[wnid] for _, wnid in rows])


def _class_words(folder: DatasetFolder, wnids: Sequence[str]) -> tuple[str, ...]:
    """`n01443537<tab>goldfish, Carassius auratus` -> `goldfish`; with the wnid where two classes share a word."""
    lines = (line.partition("\t") for line in folder.read_lines("words.txt"))
    first_words = {wnid: text.split(",")[0].strip() for wnid, _, text in lines}
    words = [first_words.get(wnid) or wnid for wnid in wnids]
    uses = Counter(words)
    return tuple(word if uses[word] == 1 else f"{word} ({wnid})" for word, wnid in zip(words, wnids, strict=True))
