"""Conformance: what every order must do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data import ORDERS, Dataset, Stream, check_order, make_stream
from siesta.errors import BadInput
from tests.data.streams import comes_once, dataset_of, write_names

OPTIONS: dict[str, dict[str, Any]] = {
    "class_incremental": {"classes_per_step": 2},
    "iid": {"steps": 3},
    "long_tailed": {"classes_per_step": 2, "imbalance": 4},
    "blurry": {"classes_per_step": 2, "level": 0.4},
    "revisiting": {"classes_per_step": 2, "share": 0.4},
    "from_file": {},
}
SEEDED = [name for name in ORDERS if name != "from_file"]
WHOLE = ["class_incremental", "iid", "blurry", "revisiting"]
EVERY = pytest.mark.parametrize("name", ORDERS)

# Results name the hash of their order, so the hashes of a seed never change.
HASHES: dict[str, str] = {
    "class_incremental": "fc8a44563644f908",
    "iid": "e58953cbebf877c7",
    "long_tailed": "2781eece9cd75ecc",
    "blurry": "0caf87424167e8c5",
    "revisiting": "e10517691a0db44b",
    "from_file": "0af07a0086956cea",
}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, dict[str, Any]]:
    names = write_names(tmp_path / "names.txt", "train/c1/0.jpg", "train/c0/3.jpg", "", "train/c4/1.jpg")
    return OPTIONS | {"from_file": {"file": str(names)}}


def made(name: str, options: dict[str, dict[str, Any]], seed: int = 0) -> Stream:
    return make_stream(dataset_of([8, 9, 8, 10, 8]), name, seed, **options[name])


def test_every_order_has_options_and_a_hash() -> None:
    assert set(OPTIONS) == set(ORDERS) and set(HASHES) == set(ORDERS.own)


@pytest.mark.parametrize("name", ORDERS.own)
def test_the_order_of_a_seed_never_changes(name: str, options: dict[str, dict[str, Any]]) -> None:
    assert made(name, options).hash[:16] == HASHES[name]


@EVERY
def test_a_stream_has_different_samples_without_task_labels(name: str, options: dict[str, dict[str, Any]]) -> None:
    stream = made(name, options)
    assert stream.indices.dtype == np.int64 and all(type(end) is int for end in stream.ends)
    samples = list(stream)
    assert len({sample.id for sample in samples}) == len(samples) == len(stream)
    for sample in samples:
        assert sample._fields == ("id", "picture", "label") and sample.label in sample.id
    assert np.concatenate(list(stream.steps())).tolist() == stream.indices.tolist()


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_is_another_order(name: str, options: dict[str, dict[str, Any]]) -> None:
    hashes = [made(name, options, seed).hash for seed in (0, 1, 2)]
    assert len(set(hashes)) == 3 and made(name, options, 1).hash == hashes[1]


@pytest.mark.parametrize("name", SEEDED)
def test_a_negative_seed_is_refused(name: str, options: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match="seed"):
        made(name, options, -1)


@pytest.mark.parametrize("name", WHOLE)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=2, max_size=8).filter(lambda s: sum(s) >= 3 and s[-1] > 2),
    data=st.data(),
)
def test_every_sample_comes_exactly_once(name: str, sizes: list[int], data: st.DataObject) -> None:
    options: dict[str, Any] = {"base_classes": data.draw(st.integers(0, len(sizes) - 1))}
    if name == "iid":
        options["steps"] = data.draw(st.integers(1, 3))
    else:
        options |= {"classes_per_step": data.draw(st.integers(1, 9)), "shuffle_classes": data.draw(st.booleans())}
    stream = make_stream(dataset_of(sizes), name, data.draw(st.integers(0, 1000)), **options)
    assert comes_once(stream)


@EVERY
def test_an_unknown_option_is_named(name: str, options: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match="has no option 'colour': it has "):
        check_order(name, options[name] | {"colour": 1})


def test_an_unknown_order_is_named() -> None:
    with pytest.raises(BadInput, match="no order 'random': choose one of class_incremental, "):
        make_stream(dataset_of([3]), "random", 0)


def test_a_function_can_be_given_in_place_of_a_name() -> None:
    def ends_first(dataset: Dataset, seed: int, *, count: int = 1) -> Stream:
        order = np.roll(np.arange(len(dataset.train)), count + seed)
        return Stream.from_steps(dataset, [order])

    assert make_stream(dataset_of([2, 2]), ends_first, 0, count=2).indices.tolist() == [2, 3, 0, 1]
    with pytest.raises(BadInput, match="order ends_first has no option 'size': it has count"):
        make_stream(dataset_of([2, 2]), ends_first, 0, size=2)
