"""Tiny-ImageNet: 200 classes of ImageNet at 64 pixels, tested on its validation pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from siesta.data.dataset import Dataset, Split
from siesta.data.layout import Layout

__all__ = ["tiny_imagenet"]

_EXPECTED = "train/<wnid>/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt"


def tiny_imagenet(path: Path, *, words: bool = False) -> Dataset:
    """Reads `train/<wnid>/images/*.JPEG`, `val/images/*.JPEG` and `val/val_annotations.txt`.

    Args:
        path: That folder, or the one that `tiny-imagenet-200` lies in.
        words: Classes are called by the first word that `words.txt` has for them, and not by their wnid.
    """
    layout = Layout("tiny_imagenet", path, _EXPECTED)
    if layout.has("tiny-imagenet-200"):
        layout = Layout("tiny_imagenet", path / "tiny-imagenet-200", _EXPECTED)
    train = layout.tree("train", "images")
    wnids = layout.learned_classes(train)
    classes = _words(layout, wnids) if words else wnids
    return Dataset(layout.name, classes, layout.split_of(train, wnids), _annotated(layout, wnids))


def _annotated(layout: Layout, wnids: Sequence[str]) -> Split:
    """Lines of a picture, its wnid and a box, with tabs between them."""
    numbers = {wnid: number for number, wnid in enumerate(wnids)}
    rows = sorted(line.split("\t")[:2] for line in layout.lines("val/val_annotations.txt"))
    for row in rows:
        if len(row) < 2 or row[1] not in numbers:
            raise layout.wrong(f"val/val_annotations.txt has no class of train/ in its line '{' '.join(row)[:80]}'")
    return layout.split([f"val/images/{name}" for name, _ in rows], [numbers[wnid] for _, wnid in rows])


def _words(layout: Layout, wnids: Sequence[str]) -> tuple[str, ...]:
    """`n01443537<tab>goldfish, Carassius auratus` -> `goldfish`; with the wnid where two classes share a word."""
    lines = (line.partition("\t") for line in layout.lines("words.txt"))
    known = {wnid: text.split(",")[0].strip() for wnid, _, text in lines}
    chosen = [known.get(wnid) or wnid for wnid in wnids]
    uses = Counter(chosen)
    return tuple(word if uses[word] == 1 else f"{word} ({wnid})" for word, wnid in zip(chosen, wnids, strict=True))
