"""Data sets in arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from siesta.data import from_arrays, load_dataset
from siesta.errors import BadInput
from tests.data.layouts import CLASSES, arrays

GOOD: dict[str, npt.NDArray[Any]] = {
    "x_train": np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3),
    "y_train": np.array([0, 1, 2, 1]),
    "x_test": np.ones((2, 2, 3, 3), np.uint8),
    "y_test": np.array([[2], [0]], np.uint8),
}


def saved(path: Path, content: dict[str, npt.NDArray[Any]]) -> Path:
    with path.open("wb") as file:
        np.savez(file, **content)  # type: ignore[arg-type]
    return path


def test_an_npz_file_with_class_names_is_read(tmp_path: Path) -> None:
    dataset = load_dataset("arrays", arrays(tmp_path))
    assert dataset.classes == CLASSES and dataset.train.names[-1] == "train/11"
    with np.load(tmp_path / "set.npz") as found:
        np.testing.assert_array_equal(np.stack(dataset.train.pictures), found["x_train"])  # type: ignore[arg-type]
        assert dataset.test.labels.tolist() == found["y_test"].tolist()


def test_classes_without_names_are_numbers(tmp_path: Path) -> None:
    dataset = load_dataset("arrays", saved(tmp_path / "s.npz", GOOD))
    assert dataset.classes == ("0", "1", "2") and dataset.test.labels.tolist() == [2, 0]


def test_grey_pictures_get_three_equal_channels() -> None:
    grey = GOOD["x_train"][..., 0]
    for pixels in (grey, grey[..., None]):
        dataset = from_arrays(pixels, GOOD["y_train"], GOOD["x_test"], GOOD["y_test"])
        picture = dataset.train.pictures[3]
        assert isinstance(picture, np.ndarray) and picture.shape == (2, 3, 3)
        assert all((picture[..., colour] == grey[3]).all() for colour in range(3))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("x_train", np.ones((4, 2, 3, 3)), "x_train must be uint8"),
        ("x_train", np.ones((4, 2, 3, 2), np.uint8), "x_train must be uint8"),
        ("x_test", np.ones((2, 2), np.uint8), "x_test must be uint8"),
        ("y_train", np.array([0, 1, 2]), "y_train must be a class number for each of the 4"),
        ("y_train", np.array([0.0, 1, 2, 1]), "y_train must be a class number"),
        ("y_train", np.array(0), "y_train must be a class number"),
        ("y_train", np.array([0, 1, 2, -1]), "labels that are not"),
        ("y_train", np.array([0, 1, 2, 2**40]), "number the classes 0, 1, 2"),
        ("y_test", np.array([0, 3]), "labels that are not"),
        ("y_train", np.array([0, 1, 2, None], dtype=object), "without pickles"),
        ("classes", np.array([1, 2, 3]), "not a one-dimensional array of strings"),
        ("classes", np.array("abc"), "not a one-dimensional array of strings"),
        ("classes", np.array(["a", "b"]), "labels that are not"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, key: str, value: npt.NDArray[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_dataset("arrays", saved(tmp_path / "s.npz", GOOD | {key: value}))


@pytest.mark.parametrize("missing", GOOD)
def test_a_missing_array_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    with pytest.raises(BadInput, match=f"has no {missing}"):
        load_dataset("arrays", saved(tmp_path / "s.npz", {k: v for k, v in GOOD.items() if k != missing}))


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    whole = saved(tmp_path / "s.npz", GOOD).read_bytes()
    np.save(tmp_path / "one.npy", GOOD["x_train"])
    contents = [whole[:-30], whole[: len(whole) // 2], whole[:200] + b"\xff" * 50 + whole[250:], b"", b"\x80\x04K\x01."]
    flags = whole.index(b"PK\x01\x02") + 8
    contents += [whole[:flags] + bytes([bit]) + whole[flags + 1 :] for bit in (1, 32)]  # "encrypted", "patched"
    for content in (*contents, (tmp_path / "one.npy").read_bytes()):
        (tmp_path / "s.npz").write_bytes(content)
        with pytest.raises(BadInput, match="cannot be read as arrays"):
            load_dataset("arrays", tmp_path / "s.npz")
