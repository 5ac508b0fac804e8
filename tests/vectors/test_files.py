from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput
from siesta.vectors import read_labels, read_vectors, row_keys

ROWS = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    np.savez(tmp_path / "all.npz", vectors=ROWS, labels=np.array(["a", "b", "a"]))
    return tmp_path / "all.npz"


def test_vectors_and_labels_of_every_kind_of_file(npz: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "one.npy", ROWS[0])
    np.save(tmp_path / "numbers.npy", np.array([3, 1, 2], np.uint8))
    (tmp_path / "text.txt").write_text("über\n \nc\n", "utf-8")
    rows = tmp_path / "rows.npy"
    assert np.array_equal(read_vectors(npz), ROWS) and np.array_equal(read_vectors(rows), ROWS)
    assert np.array_equal(read_vectors(tmp_path / "one.npy"), ROWS[:1])
    assert read_labels(npz, None, 3) == read_labels(rows, npz, 3) == ["a", "b", "a"]
    assert read_labels(rows, tmp_path / "numbers.npy", 3) == ["3", "1", "2"]
    assert read_labels(rows, tmp_path / "text.txt", 3) == ["über", " ", "c"]


def test_files_that_cannot_be_used_are_refused(npz: Path, tmp_path: Path) -> None:
    for name, array in (("cube", np.zeros((2, 2, 2))), ("object", np.array([{}])), ("floats", np.array([0.5]))):
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY garbage")
    (tmp_path / "broken.npz").write_bytes(npz.read_bytes()[:100])
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    np.savez(tmp_path / "other.npz", x=ROWS)
    for name, words in {
        "gone.npy": "there is no file",
        "photo.jpg": "is no file of vectors: give a .npy or .npz file",
        "cube.npy": "an array of shape (2, 2, 2): give one of shape",
        "object.npy": "cannot be read as an array without pickles",
        "broken.npy": "cannot be read as an array",
        "broken.npz": "cannot be read as an array",
        "other.npz": "has no array 'vectors', only x: name it so in numpy.savez",
    }.items():
        with pytest.raises(BadInput, match=re.escape(words)):
            read_vectors(tmp_path / name)
    for labels, words in {
        None: "all.npy holds no labels: give a file of them (--labels FILE)",
        "gone.txt": "there is no file of labels at",
        "latin.txt": "cannot be read as labels",
        "floats.npy": "an array (1,) of float64: give one dimension of text or whole numbers",
        "other.npz": "has no array 'labels', only x",
    }.items():
        with pytest.raises(BadInput, match=re.escape(words)):
            read_labels(tmp_path / "all.npy", None if labels is None else tmp_path / labels, 3)
    with pytest.raises(BadInput, match=r"holds 4 vectors and .*all\.npz 3 labels: give one label for each"):
        read_labels(npz, None, 4)


def test_an_array_that_fills_the_memory_is_refused_before_it_is_read(
    npz: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert zipfile.is_zipfile(npz)
    monkeypatch.setattr("siesta.vectors.files._MAX_BYTES", 100)
    with pytest.raises(BadInput, match=r"'vectors' of .* GB of memory: save it with numpy\.save instead"):
        read_vectors(npz)


def test_keys_depend_on_label_contents_and_repetition_but_not_on_the_order() -> None:
    keys = row_keys(ROWS, ["a", "b", "a"])
    assert row_keys(ROWS[::-1], ["a", "b", "a"]) == keys[::-1]
    assert len({*keys, *row_keys(ROWS, ["b", "a", "b"])}) == 6
    twice = row_keys([ROWS[0], ROWS[0]], ["a", "a"])
    assert twice[0] == keys[0] != twice[1]
    assert all(-(2**63) <= key < 2**63 for key in keys)
