"""The cache of codes: complete, resumed after a kill, shared by processes, and rebuilt when it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from siesta.data import Dataset, Split, load_dataset
from siesta.errors import BadInput
from siesta.experiment.code_cache import cached_codes
from siesta.files import Lock, cache_folder
from siesta.images import Pixels
from siesta.learner import Siesta
from tests.conftest import MakePictures

CLASSES = [f"colour {number}" for number in range(4)]
TRAIN = 36  # more than one batch


@pytest.fixture(scope="module")
def learner() -> Siesta:
    return Siesta.create(":memory:", memory="1MB", image_size=32)


@pytest.fixture(scope="module")
def other_learners() -> list[Siesta]:
    return [
        Siesta.create(":memory:", memory="1MB", image_size=64),
        Siesta.create(":memory:", memory="1MB", image_size=32, codec="raw"),
    ]


@pytest.fixture
def dataset(tmp_path: Path, make_pictures: MakePictures, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    make_pictures(tmp_path / "colours" / "train", CLASSES, each=TRAIN // len(CLASSES))
    make_pictures(tmp_path / "colours" / "test", CLASSES, each=1, seed=1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return load_dataset("image_folder", tmp_path / "colours")


@pytest.fixture
def train(dataset: Dataset) -> Split:
    return dataset.train


def make_unreadable(pictures: list[Path | Pixels]) -> None:
    """Overwrite image files by zeros; their sizes, and with them the cache key, stay."""
    for picture in pictures:
        assert isinstance(picture, Path)
        picture.write_bytes(bytes(picture.stat().st_size))


def test_codes_are_those_of_the_learner_and_come_from_disk_the_second_time(learner: Siesta, train: Split) -> None:
    calls: list[tuple[int, int]] = []
    first = cached_codes(train, learner.pipeline, lambda done, total: calls.append((done, total)))
    assert (first.codes == learner.encode(train.pictures)).all()
    assert first.seconds > 0
    assert calls == [(32, TRAIN), (TRAIN, TRAIN)]
    make_unreadable(list(train.pictures))
    second = cached_codes(train, learner.pipeline)
    assert (second.codes == first.codes).all()
    assert second.seconds == first.seconds


def test_images_sizes_and_networks_have_separate_codes(
    other_learners: list[Siesta], learner: Siesta, dataset: Dataset
) -> None:
    shapes = [
        cached_codes(split, other.pipeline).codes.shape
        for split in (dataset.train, dataset.test)
        for other in (learner, *other_learners)
    ]
    assert len(set(shapes)) == 6
    assert len(list(cache_folder("codes").iterdir())) == 6


def test_after_a_kill_it_resumes_at_the_last_synced_batch(learner: Siesta, train: Split) -> None:
    complete = cached_codes(train, learner.pipeline)
    codes = np.array(complete.codes)
    (folder,) = cache_folder("codes").iterdir()
    (folder / "done.json").unlink()
    state = {"done": 32, "seconds": complete.seconds * 32, "code_bytes": codes.shape[1]}
    (folder / "progress.json").write_text(json.dumps(state))
    with (folder / "codes").open("r+b") as file:
        file.truncate(32 * codes.shape[1] + 5)  # and a part of the next batch
    make_unreadable(list(train.pictures[:32]))
    assert (cached_codes(train, learner.pipeline).codes == codes).all()


def test_an_unreadable_image_is_named(learner: Siesta, train: Split) -> None:
    broken = train.pictures[7]
    assert isinstance(broken, Path)
    broken.write_bytes(b"not a picture")
    with pytest.raises(
        BadInput, match=f"{broken.name} is not a readable image: .*remove it; an experiment uses every image"
    ):
        cached_codes(train, learner.pipeline)


def test_a_second_process_waits_for_the_first(learner: Siesta, train: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    cached_codes(train, learner.pipeline)
    (folder,) = cache_folder("codes").iterdir()
    done = (folder / "done.json").rename(folder / "hidden")
    lock = Lock(folder / "lock", str)
    waits: list[float] = []

    def finish(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            done.rename(folder / "done.json")

    monkeypatch.setattr("siesta.experiment.code_cache.time.sleep", finish)
    make_unreadable(list(train.pictures))  # it must not encode them itself
    assert len(cached_codes(train, learner.pipeline).codes) == TRAIN
    assert len(waits) == 2
    lock.release()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("codes", None),
        ("codes", b"short"),
        ("done.json", b"garbage"),
        ("done.json", b"{}"),
        ("done.json", b'{"seconds": 1, "code_bytes": 0}'),
    ],
)
@pytest.mark.parametrize("progress", [None, b"{}", b"[]", b'{"done": 2, "seconds": 1, "code_bytes": 32}'])
def test_a_damaged_cache_is_built_again(
    learner: Siesta, dataset: Dataset, name: str, content: bytes | None, progress: bytes | None
) -> None:
    split = dataset.test
    codes = np.array(cached_codes(split, learner.pipeline).codes)
    (folder,) = cache_folder("codes").iterdir()
    for file, data in ((name, content), ("progress.json", progress)):
        (folder / file).unlink(missing_ok=True)
        if data is not None:
            (folder / file).write_bytes(data)
    assert (cached_codes(split, learner.pipeline).codes == codes).all()
