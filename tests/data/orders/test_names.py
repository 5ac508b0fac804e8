"""Files of picture names."""

from __future__ import annotations

from pathlib import Path

from siesta.data import Dataset, Pictures, Split
from siesta.data.orders.names import read_image_list
from tests.data.streams import dataset_of, write_names


def test_names_with_spaces_and_any_bytes_are_found(tmp_path: Path) -> None:
    whole = dataset_of([4])
    names = ["a 1", "a", "two words.jpg", b"caf\xe9.jpg".decode("utf-8", "surrogateescape")]
    train = Split(Pictures.from_files(tmp_path, names), names, whole.train.labels)
    dataset = Dataset("odd", whole.classes, train, whole.test)
    (tmp_path / "names.txt").write_bytes(b"\xef\xbb\xbfcaf\xe9.jpg\r\ntwo words.jpg 7\na 1\na 0\n")
    assert [step.tolist() for step in read_image_list(dataset, tmp_path / "names.txt")] == [[3, 2, 0, 1]]


def test_blank_lines_separate_steps(tmp_path: Path) -> None:
    file = write_names(tmp_path / "names.txt", "train/c0/1.jpg", "", "", "train/c0/0.jpg")
    assert [step.tolist() for step in read_image_list(dataset_of([2]), file)] == [[1], [0]]
