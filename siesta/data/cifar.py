"""CIFAR-10 and CIFAR-100 in their binary versions; the Python versions are pickles, which are unsafe to load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, Pictures, Split
from siesta.data.dataset_folder import DatasetFolder

__all__ = ["cifar10", "cifar100"]

_PIXEL_BYTES = 3 * 32 * 32


def cifar10(path: Path) -> Dataset:
    """Read `cifar-10-batches-bin/`: data_batch_1.bin to data_batch_5.bin, test_batch.bin, batches.meta.txt."""
    folder = _binary_folder("cifar10", path, "cifar-10-batches-bin", "cifar-10-batches-py", "data_batch_1")
    classes = tuple(folder.read_lines("batches.meta.txt"))
    batches = [f"data_batch_{number}.bin" for number in range(1, 6)]
    train = _split(folder, "train", batches, label_bytes=1, label_index=0)
    test = _split(folder, "test", ["test_batch.bin"], label_bytes=1, label_index=0)
    return Dataset(folder.name, classes, train, test)


def cifar100(path: Path, *, coarse: bool = False) -> Dataset:
    """Read `cifar-100-binary/`: train.bin, test.bin, fine_label_names.txt, coarse_label_names.txt.

    Args:
        path: That folder, or the folder that contains it.
        coarse: Use the twenty coarse classes instead of the hundred fine ones.
    """
    folder = _binary_folder("cifar100", path, "cifar-100-binary", "cifar-100-python", "train")
    classes = tuple(folder.read_lines("coarse_label_names.txt" if coarse else "fine_label_names.txt"))
    index = 0 if coarse else 1
    train = _split(folder, "train", ["train.bin"], label_bytes=2, label_index=index)
    test = _split(folder, "test", ["test.bin"], label_bytes=2, label_index=index)
    return Dataset(folder.name, classes, train, test)


def _binary_folder(name: str, path: Path, binary: str, python: str, python_file: str) -> DatasetFolder:
    """Return the folder of the binary version; report the Python version where that is there instead."""
    folder = DatasetFolder(name, path, f"the binary version, {binary}/ with its .bin and .txt files")
    if folder.exists(binary):
        return DatasetFolder(name, path / binary, folder.expected)
    if folder.exists(python) or folder.exists(python_file) or path.name == python:
        raise folder.error(
            f"{path} has the Python version, whose pickles are not read; download the binary version instead"
        )
    return folder


def _split(folder: DatasetFolder, part: str, files: Sequence[str], label_bytes: int, label_index: int) -> Split:
    """Read records of `label_bytes` labels, of which number `label_index` is used, and 3 x 32 x 32 pixels."""
    records = np.concatenate([_records(folder, file, label_bytes + _PIXEL_BYTES) for file in files])
    pixels = records[:, label_bytes:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    names = [f"{part}/{index}" for index in range(len(records))]
    return Split(Pictures.from_array(pixels), names, records[:, label_index].astype(np.int32))


def _records(folder: DatasetFolder, file: str, length: int) -> npt.NDArray[np.uint8]:
    path = folder.root / file
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise folder.error(f"{path} cannot be read ({error.strerror})") from error
    if not len(content) or len(content) % length:
        raise folder.error(f"{path} is truncated: {len(content)} bytes are not a whole number of records of {length}")
    return content.reshape(-1, length)
