"""Orders from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import make_stream
from siesta.errors import BadInput
from tests.data.streams import dataset_of, write_names


def test_the_order_is_that_of_the_file_and_blank_lines_end_steps(tmp_path: Path) -> None:
    lines = ["", "train/c1/1.jpg", "train/c0/0.jpg", "", "  ", "train/c1/0.jpg", ""]
    file = write_names(tmp_path / "order.txt", *lines)
    for seed in (0, 1):
        stream = make_stream(dataset_of([2, 2]), "from_file", seed, file=file, base=True)
        assert [sample.id for sample in stream] == [line for line in lines if line.strip()]
        assert stream.ends == (2, 3) and stream.base


def test_a_stream_written_to_a_file_has_the_same_hash(tmp_path: Path) -> None:
    dataset = dataset_of([9, 9, 9])
    first = make_stream(dataset, "blurry", 4, classes_per_step=1)
    lines = [line for step in first.steps() for line in (*(dataset.train.names[i] for i in step), "")]
    again = make_stream(dataset, "from_file", 0, file=write_names(tmp_path / "order.txt", *lines))
    assert again.hash == first.hash


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["train/c0/0.jpg", "train/c9/0.jpg"], "names 'train/c9/0.jpg', which is not a training image of made"),
        (["test/c0.jpg"], "not a training image"),
        (["train/c0/0.jpg", "", "train/c0/0.jpg 0"], "names an image twice"),
        ([""], "no training images"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    file = write_names(tmp_path / "order.txt", *lines)
    with pytest.raises(BadInput, match=message):
        make_stream(dataset_of([2, 2]), "from_file", 0, file=file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path / "gone.txt", tmp_path):
        with pytest.raises(BadInput, match="give a file of image names"):
            make_stream(dataset_of([2]), "from_file", 0, file=place)
