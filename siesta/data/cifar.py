"""CIFAR-10 and CIFAR-100 in their binary versions; the Python versions are pickles, which are never trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, Pictures, Split
from siesta.data.layout import Layout

__all__ = ["cifar10", "cifar100"]

_PIXELS = 3 * 32 * 32


def cifar10(path: Path) -> Dataset:
    """Reads `cifar-10-batches-bin/`: data_batch_1.bin to data_batch_5.bin, test_batch.bin, batches.meta.txt."""
    layout = _layout("cifar10", path, "cifar-10-batches-bin", "cifar-10-batches-py", "data_batch_1")
    classes = tuple(layout.lines("batches.meta.txt"))
    train = [f"data_batch_{number}.bin" for number in range(1, 6)]
    parts = (_split(layout, part, files, 1, 0) for part, files in (("train", train), ("test", ["test_batch.bin"])))
    return Dataset(layout.name, classes, *parts)


def cifar100(path: Path, *, coarse: bool = False) -> Dataset:
    """Reads `cifar-100-binary/`: train.bin, test.bin, fine_label_names.txt, coarse_label_names.txt.

    Args:
        path: That folder, or the one that it lies in.
        coarse: The twenty coarse classes instead of the hundred fine ones.
    """
    layout = _layout("cifar100", path, "cifar-100-binary", "cifar-100-python", "train")
    classes = tuple(layout.lines("coarse_label_names.txt" if coarse else "fine_label_names.txt"))
    parts = (_split(layout, part, [f"{part}.bin"], 2, 0 if coarse else 1) for part in ("train", "test"))
    return Dataset(layout.name, classes, *parts)


def _layout(name: str, path: Path, folder: str, pickles: str, pickled: str) -> Layout:
    layout = Layout(name, path, f"the binary version, {folder}/ with its .bin and .txt files")
    if layout.has(folder):
        return Layout(name, path / folder, layout.expected)
    if layout.has(pickles) or layout.has(pickled) or path.name == pickles:
        raise layout.wrong(f"{path} has the Python version, whose pickles are not read; fetch the binary version")
    return layout


def _split(layout: Layout, part: str, files: Sequence[str], labels: int, which: int) -> Split:
    """Records of `labels` bytes of labels, of which `which` counts, and 3 x 32 x 32 bytes of pixels."""
    records = np.concatenate([_records(layout, file, labels + _PIXELS) for file in files])
    pixels = records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    names = [f"{part}/{number}" for number in range(len(records))]
    return Split(Pictures.of_stack(pixels), names, records[:, which].astype(np.int32))


def _records(layout: Layout, file: str, length: int) -> npt.NDArray[np.uint8]:
    path = layout.root / file
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise layout.wrong(f"{path} cannot be read ({error.strerror})") from error
    if not len(content) or len(content) % length:
        raise layout.wrong(f"{path} is cut off: {len(content)} bytes are not a whole number of records of {length}")
    return content.reshape(-1, length)
