"""CIFAR in its binary versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import CLASSES, cifar10, cifar100, cifar_pixels


def test_records_are_a_label_and_three_planes_of_pixels(tmp_path: Path) -> None:
    dataset = load_dataset("cifar10", cifar10(tmp_path))
    assert dataset.classes == CLASSES
    assert dataset.train.names[:2] == ["train/0", "train/1"] and len(dataset.train) == 15
    assert dataset.train.labels.tolist() == [0, 1, 2] * 5 and dataset.test.labels.tolist() == [0, 1, 2]
    expected = np.empty((32, 32, 3), np.uint8)
    planes = cifar_pixels(10 * 2 + 1)  # second record of the second batch
    for colour in range(3):
        for row in range(32):
            expected[row, :, colour] = list(planes[colour * 1024 + row * 32 :][:32])
    np.testing.assert_array_equal(dataset.train.pictures[4], expected)


def test_cifar100_has_fine_and_coarse_labels(tmp_path: Path) -> None:
    fine = load_dataset("cifar100", cifar100(tmp_path))
    coarse = load_dataset("cifar100", tmp_path / "cifar-100-binary", coarse=True)
    assert fine.classes == CLASSES and coarse.classes == ("insects", "mammals")
    assert fine.train.labels.tolist() == [0, 1, 2] * 4 and coarse.train.labels.tolist() == [0, 0, 1] * 4
    np.testing.assert_array_equal(fine.train.pictures[7], coarse.train.pictures[7])
    assert np.asarray(fine.test.pictures[0])[0, 0, 0] == cifar_pixels(200)[0]


@pytest.mark.parametrize("name", ["cifar-10-batches-py", "cifar-100-python"])
def test_pickles_are_refused(tmp_path: Path, name: str) -> None:
    which = "cifar10" if "batches" in name else "cifar100"
    (tmp_path / name).mkdir()
    (tmp_path / name / ("data_batch_1" if which == "cifar10" else "train")).write_bytes(b"\x80\x02")
    for place in (tmp_path, tmp_path / name):
        with pytest.raises(BadInput, match="whose pickles are not read; download the binary version"):
            load_dataset(which, place)


@pytest.mark.parametrize("size", [0, 1, 3073 * 2 - 1, 3073 + 1])
def test_a_truncated_file_is_refused_with_its_name(tmp_path: Path, size: int) -> None:
    file = cifar10(tmp_path) / "cifar-10-batches-bin" / "data_batch_4.bin"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(BadInput, match=r"data_batch_4\.bin is truncated"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize("missing", ["data_batch_5.bin", "test_batch.bin", "batches.meta.txt"])
def test_a_missing_file_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    (cifar10(tmp_path) / "cifar-10-batches-bin" / missing).unlink()
    with pytest.raises(BadInput, match=missing):
        load_dataset("cifar10", tmp_path)


def test_labels_without_a_class_are_refused(tmp_path: Path) -> None:
    file = cifar10(tmp_path) / "cifar-10-batches-bin" / "test_batch.bin"
    file.write_bytes(b"\x07" + file.read_bytes()[1:])
    with pytest.raises(BadInput, match=r"labels that are not in 0\.\.2"):
        load_dataset("cifar10", tmp_path)
