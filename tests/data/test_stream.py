"""Streams of samples without task labels."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from siesta.data import Sample, Stream
from siesta.errors import BadInput
from tests.data.streams import dataset_of

DATASET = dataset_of([2, 2])  # in the order c0/0, c1/0, c0/1, c1/1


def stream(indices: list[int], *ends: int) -> Stream:
    return Stream(DATASET, np.array(indices), ends)


def test_samples_come_in_order_with_id_picture_and_label_only() -> None:
    samples = list(stream([3, 0], 1, 2))
    assert [(sample.id, sample.label) for sample in samples] == [("train/c1/1.jpg", "c1"), ("train/c0/0.jpg", "c0")]
    assert samples[0].picture == DATASET.train.pictures[3]
    assert Sample._fields == ("id", "picture", "label")


def test_steps_are_the_indices_between_ends() -> None:
    found = stream([3, 0, 2], 1, 3)
    assert [step.tolist() for step in found.steps()] == [[3], [0, 2]] and len(found) == 3


def test_the_hash_is_over_names_labels_and_ends() -> None:
    text = b"train/c1/1.jpg\0c1\0train/c0/0.jpg\0c0\0" + b"1 2"
    assert stream([3, 0], 1, 2).hash == hashlib.sha256(text).hexdigest()
    hashes = {stream([3, 0], 1, 2).hash, stream([3, 0], 2).hash, stream([0, 3], 1, 2).hash, stream([3, 2], 1, 2).hash}
    assert len(hashes) == 4


def test_the_hash_of_a_long_stream_is_over_all_of_it() -> None:
    dataset = dataset_of([10_001])
    text = "".join(f"{name}\0c0\0" for name in dataset.train.names) + "10001"
    assert Stream(dataset, np.arange(10_001), (10_001,)).hash == hashlib.sha256(text.encode()).hexdigest()


def test_file_names_of_any_bytes_have_a_hash() -> None:
    odd = dataset_of([1])
    names = [b"caf\xe9.jpg".decode("utf-8", "surrogateescape")]
    object.__setattr__(odd.train, "names", names)
    assert Stream(odd, np.array([0]), (1,)).hash == hashlib.sha256(b"caf\xe9.jpg\0c0\0001").hexdigest()


@pytest.mark.parametrize("ends", [(), (1,), (3,), (0, 2), (2, 2), (2, 1, 2)])
def test_ends_must_increase_to_the_last_sample(ends: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="steps"):
        stream([3, 0], *ends)


def test_steps_without_samples_are_left_out() -> None:
    empty = np.empty(0, np.int64)
    found = Stream.from_steps(DATASET, [empty, np.array([1]), empty, np.array([0, 2])])
    assert found.ends == (1, 3)
    with pytest.raises(BadInput, match="no training images"):
        Stream.from_steps(DATASET, [empty])
