"""Long-tailed class distributions."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import Stream, check_order, make_stream
from siesta.errors import BadInput
from tests.data.streams import classes_in, dataset_of, write_names


def counts(stream: Stream) -> list[int]:
    found = stream.dataset.train.labels[stream.indices]
    return [int((found == label).sum()) for label in range(len(stream.dataset.classes))]


def test_class_sizes_are_those_of_long_tailed_cifar() -> None:
    stream = make_stream(dataset_of([5000] * 10), "long_tailed", 0, classes_per_step=5)
    assert counts(stream) == [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]  # CIFAR-10-LT, ratio 100


def test_every_class_keeps_at_least_one_picture_and_at_most_all() -> None:
    assert counts(make_stream(dataset_of([3, 100, 2, 50]), "long_tailed", 0, imbalance=1000, over="iid", steps=1)) == [
        3,
        10,
        1,
        1,
    ]
    assert counts(make_stream(dataset_of([7]), "long_tailed", 0, classes_per_step=1)) == [7]


def test_the_seed_can_decide_which_classes_are_large() -> None:
    dataset = dataset_of([64] * 7)
    found = [
        counts(make_stream(dataset, "long_tailed", s, imbalance=64, shuffle_ranks=True, classes_per_step=7))
        for s in range(4)
    ]
    assert all(sorted(sizes) == [1, 2, 4, 8, 16, 32, 64] for sizes in found)
    assert len({tuple(sizes) for sizes in found}) > 1


def test_indices_refer_to_the_whole_data_set_in_the_inner_order() -> None:
    dataset = dataset_of([64] * 4)
    stream = make_stream(dataset, "long_tailed", 0, imbalance=8, base_classes=2, classes_per_step=1)
    assert stream.dataset is dataset and stream.base
    assert [sorted(set(step)) for step in classes_in(stream)] == [[0, 1], [2], [3]]
    spread = make_stream(dataset, "long_tailed", 0, imbalance=8, over="iid", steps=4)
    assert sorted(spread.indices) == sorted(stream.indices) and len(spread.ends) == 4


def test_a_list_names_the_pictures_to_keep_with_or_without_labels(tmp_path: Path) -> None:
    file = write_names(tmp_path / "lt.txt", "train/c0/1.jpg 0", "train/c2/0.jpg", "train/c0/0.jpg 0")
    stream = make_stream(dataset_of([3, 3, 3]), "long_tailed", 0, keep=str(file), classes_per_step=1)
    assert classes_in(stream) == [[0, 0], [2]] and counts(stream) == [2, 0, 1]


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be 1 or more, not"):
        make_stream(dataset_of([3]), "long_tailed", 0, imbalance=0.5, classes_per_step=1)
    with pytest.raises(BadInput, match=r"must be one of class_incremental, iid, .*, not 'long_tailed'"):
        check_order("long_tailed", {"over": "long_tailed"})
    with pytest.raises(BadInput, match="over iid needs the option 'steps'"):
        check_order("long_tailed", {"over": "iid"})
    with pytest.raises(BadInput, match="over iid has no option 'classes_per_step'"):
        check_order("long_tailed", {"over": "iid", "classes_per_step": 2, "steps": 1})
    empty = write_names(tmp_path / "empty.txt", "")
    with pytest.raises(BadInput, match="no training images"):
        make_stream(dataset_of([3]), "long_tailed", 0, keep=empty, classes_per_step=1)
