"""Files of vectors: .npy and .npz, read without pickles, and labels beside them."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["read_labels", "read_vectors", "row_keys"]

_MAX_BYTES = 4_000_000_000
_UNREADABLE = (OSError, ValueError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_VECTORS, _LABELS = "vectors", "labels"


def read_vectors(path: Path) -> npt.NDArray[Any]:
    """Return the vectors (N, d) of a .npy file, or the array `vectors` of a .npz file; a single vector is one row."""
    array = _read_array(path, _VECTORS)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise BadInput(f"{path} holds an array of shape {array.shape}: give one of shape (number of vectors, length)")
    return array


def read_labels(path: Path, labels: Path | None, count: int) -> list[str]:
    """Return a label for each of the `count` vectors of a file.

    Args:
        path: The file of vectors; a .npz file may hold `labels`, too.
        labels: A file of labels: text with a line for each vector, .npy, or .npz with the array `labels`. None takes
            those of `path`.
        count: The number of vectors.
    """
    source = path if labels is None else labels
    if labels is None and path.suffix != ".npz":
        raise BadInput(f"{path} holds no labels: give a file of them (--labels FILE)")
    found = _read_lines(source) if source.suffix not in (".npy", ".npz") else _label_texts(source)
    if len(found) != count:
        raise BadInput(f"{path} holds {count} vectors and {source} {len(found)} labels: give one label for each vector")
    return found


def row_keys(vectors: Iterable[npt.NDArray[Any]], labels: Iterable[str]) -> list[int]:
    """Return a 64-bit number for each labelled vector (d,), by which a repeated run finds it.

    It is a part of a SHA-256 of label, contents and how many equal ones come before, so the order of a file and what is
    added to it make no difference.
    """
    seen: Counter[bytes] = Counter()
    keys = []
    for vector, label in zip(vectors, labels, strict=True):
        text = label.encode("utf-8", "surrogatepass")
        content = hashlib.sha256(
            len(text).to_bytes(8, "little") + text + np.ascontiguousarray(vector).tobytes()
        ).digest()
        digest = hashlib.sha256(content + seen[content].to_bytes(8, "little")).digest()
        seen[content] += 1
        keys.append(int.from_bytes(digest[:8], "little", signed=True))
    return keys


def _read_array(path: Path, name: str) -> npt.NDArray[Any]:
    """Return the array of a .npy file, or the one of this name of a .npz file."""
    try:
        if path.suffix == ".npy":
            array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
        if path.suffix == ".npz":
            return _member(path, name)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}: check the path") from None
    except _UNREADABLE as error:
        raise BadInput(
            f"{path} cannot be read as an array without pickles ({error}): write it with numpy.save"
        ) from error
    raise BadInput(f"{path} is no file of vectors: give a .npy or .npz file, as numpy.save and numpy.savez write them")


def _member(path: Path, name: str) -> npt.NDArray[Any]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # closes a damaged file, too
        if name not in archive:
            held = ", ".join(archive.files) or "nothing"
            raise BadInput(f"{path} has no array '{name}', only {held}: name it so in numpy.savez")
        size = archive.zip.getinfo(f"{name}.npy").file_size if f"{name}.npy" in archive.zip.namelist() else 0
        if size > _MAX_BYTES:
            raise BadInput(f"'{name}' of {path} takes {size / 1e9:.1f} GB of memory: save it with numpy.save instead")
        array: npt.NDArray[Any] = archive[name]
        return array


def _label_texts(path: Path) -> list[str]:
    """Return labels that are stored as an array of text or of whole numbers."""
    array = _read_array(path, _LABELS)
    if array.ndim != 1 or array.dtype.kind not in "Uiu":
        shown = f"{array.shape} of {array.dtype}"
        raise BadInput(f"the labels in {path} are an array {shown}: give one dimension of text or whole numbers")
    return [str(label) for label in array.tolist()]


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise BadInput(f"there is no file of labels at {path}: check the path") from None
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read as labels ({error}): give text in UTF-8, a label on each line"
        ) from error
