"""Splits, and data sets made from others."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data import Dataset, Pictures, Split, first_classes, first_images, from_arrays, held_out
from siesta.errors import BadInput
from tests.data.streams import dataset_of


def test_pictures_are_created_when_they_are_accessed(tmp_path: Path) -> None:
    files = Pictures.from_files(tmp_path, ["a.jpg", "b.jpg", "c.jpg"])
    assert files[1] == files[-2] == tmp_path / "b.jpg"
    assert files[1:] == [tmp_path / "b.jpg", tmp_path / "c.jpg"] and list(files) == files[:]
    for index in (3, -4):
        with pytest.raises(IndexError):
            files[index]
    assert list(pickle.loads(pickle.dumps(files))) == list(files), "they can go to another process"


def test_pixels_are_contiguous_copies() -> None:
    stack = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5).transpose(0, 2, 3, 1)
    first = Pictures.from_array(stack)[0]
    assert isinstance(first, np.ndarray) and first.flags.c_contiguous
    np.testing.assert_array_equal(first, stack[0])
    first[:] = 0
    assert stack[0].any()


def test_a_split_has_equal_numbers_of_pictures_names_and_labels() -> None:
    with pytest.raises(BadInput, match="not 1, 2 and 1"):
        Split([Path("a")], ["a", "b"], np.zeros(1, np.int32))


def test_classes_and_labels_are_checked() -> None:
    split = dataset_of([1, 2]).train
    with pytest.raises(BadInput, match="same name"):
        Dataset("d", ("a", "a"), split, split)
    with pytest.raises(BadInput, match=r"not in 0\.\.0"):
        Dataset("d", ("a",), split, split)


def test_the_fingerprint_depends_on_names_labels_sizes_and_pixels(tmp_path: Path) -> None:
    def split(name: str = "a", label: int = 0, content: bytes = b"12") -> str:
        (tmp_path / name).write_bytes(content)
        return Split(Pictures.from_files(tmp_path, [name]), [name], np.array([label], np.int32)).fingerprint

    prints = [split(), split(name="b"), split(label=1), split(content=b"123")]
    assert len(set(prints)) == 4 and split() == prints[0] and len(prints[0]) == 64
    pixels = np.zeros((1, 2, 2, 3), np.uint8)
    one, two = (from_arrays(x, np.zeros(1, int), x, np.zeros(1, int)) for x in (pixels, pixels + np.uint8(1)))
    assert one.train.fingerprint != two.train.fingerprint and one.fingerprint != two.fingerprint


def test_a_missing_file_is_named_by_the_fingerprint(tmp_path: Path) -> None:
    split = Split(Pictures.from_files(tmp_path, ["gone.jpg"]), ["gone.jpg"], np.zeros(1, np.int32))
    with pytest.raises(BadInput, match=r"gone\.jpg"):
        _ = split.fingerprint


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any), st.floats(0.01, 0.99), st.integers(0, 99))
def test_held_out_divides_every_class_and_never_touches_the_test_set(sizes: list[int], share: float, seed: int) -> None:
    dataset = dataset_of(sizes)
    divided = held_out(dataset, share, seed)
    names = sorted([*divided.train.names, *divided.test.names])
    assert names == sorted(dataset.train.names)
    assert divided.classes == dataset.classes and divided.name != dataset.name
    for label, size in enumerate(sizes):
        kept, asked = (int((part.labels == label).sum()) for part in (divided.train, divided.test))
        assert kept + asked == size
        if size >= 2:
            assert kept >= 1 and asked >= 1 and abs(asked - share * size) <= 1
        else:
            assert asked == 0
    whose = dict(zip(dataset.train.names, dataset.train.labels, strict=True))
    for part in (divided.train, divided.test):
        assert all(whose[name] == label for name, label in zip(part.names, part.labels, strict=True))


def test_the_seed_decides_which_pictures_are_held_out() -> None:
    dataset = dataset_of([20, 20])
    one, again, other = (list(held_out(dataset, 0.3, seed).test.names) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_outside_of_0_and_1_is_refused(share: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        held_out(dataset_of([3]), share, 0)


def test_the_first_classes_are_selected() -> None:
    dataset = dataset_of([2, 3, 4])
    two = first_classes(dataset, 2)
    assert two.classes == ("c0", "c1")
    assert list(two.train.names) == [n for n, y in zip(dataset.train.names, dataset.train.labels, strict=True) if y < 2]
    for count in (0, 4):
        with pytest.raises(BadInput, match="3 classes"):
            first_classes(dataset, count)


def test_the_first_images_of_each_class_are_selected() -> None:
    dataset = dataset_of([2, 3, 4])
    few = first_images(dataset, 3)
    assert few.classes == dataset.classes and len(few.test) == len(dataset.test)
    names = np.array(dataset.train.names)
    for label in range(3):
        expected = names[dataset.train.labels == label][:3].tolist()
        assert np.array(few.train.names)[few.train.labels == label].tolist() == expected
    with pytest.raises(BadInput, match="images_per_class must be 1 or more, not 0"):
        first_images(dataset, 0)
