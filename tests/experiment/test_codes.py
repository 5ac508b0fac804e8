from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from siesta.data import Dataset, Split, load_dataset
from siesta.errors import BadInput
from siesta.experiment import codes
from siesta.experiment.codes import cache_folder, coded
from siesta.images import Pixels
from siesta.learner import Siesta
from siesta.store.files import Lock


@pytest.fixture
def learner() -> Siesta:
    return Siesta.create(":memory:", memory="1MB", image_size=32)


@pytest.fixture
def colours_dataset(colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(codes, "_AT_ONCE", 3)
    monkeypatch.setattr(codes, "_SAVED_EVERY", 2)
    return load_dataset("image_folder", colours)


@pytest.fixture
def train(colours_dataset: Dataset) -> Split:
    return colours_dataset.train


def test_codes_are_those_of_the_learner_and_come_from_disk_the_second_time(
    learner: Siesta, train: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    first = coded(train, learner.pipeline, lambda done, total: seen.append((done, total)))
    assert (first.codes == learner.encode(train.pictures)).all()
    assert first.seconds > 0
    assert seen[0] == (3, 20)
    assert seen[-1] == (20, 20)
    monkeypatch.setattr(codes, "_fill", lambda *_: pytest.fail("it was coded again"))
    second = coded(train, learner.pipeline)
    assert (second.codes == first.codes).all()
    assert second.seconds == first.seconds


def test_other_pictures_sizes_and_networks_have_codes_of_their_own(colours_dataset: Dataset, learner: Siesta) -> None:
    larger = Siesta.create(":memory:", memory="1MB", image_size=64)
    deeper = Siesta.create(":memory:", memory="1MB", image_size=32, codec="raw")
    shapes = [
        coded(part, some.pipeline).codes.shape
        for part in (colours_dataset.train, colours_dataset.test)
        for some in (learner, larger, deeper)
    ]
    assert len(set(shapes)) == 6
    assert len(list(cache_folder().iterdir())) == 6


def test_killed_it_goes_on_where_it_was(learner: Siesta, train: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.array(coded(train, learner.pipeline).codes)
    (folder,) = cache_folder().iterdir()
    (folder / "done.json").unlink()
    done = json.loads((folder / "progress.json").read_text())["done"]
    assert 0 < done < 20
    with (folder / "codes").open("r+b") as file:
        file.truncate(done * whole.shape[1] + 5)
    read: list[int] = []
    picture = codes._picture

    def reading(split: Split, index: int, size: int) -> Pixels:
        read.append(index)
        return picture(split, index, size)

    monkeypatch.setattr(codes, "_picture", reading)
    assert (coded(train, learner.pipeline).codes == whole).all()
    assert read == list(range(done, 20))


def test_a_broken_picture_is_named_and_nothing_is_kept_of_it(learner: Siesta, train: Split) -> None:
    broken = train.pictures[7]
    assert isinstance(broken, Path)
    broken.write_bytes(b"not a picture")
    with pytest.raises(BadInput, match=f"{broken.name} is not a readable picture: mend or remove it"):
        coded(train, learner.pipeline)


def test_a_second_process_waits_for_the_first(learner: Siesta, train: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    coded(train, learner.pipeline)
    (folder,) = cache_folder().iterdir()
    done = (folder / "done.json").rename(folder / "hidden")
    lock = Lock(folder / "lock", str)
    waited: list[float] = []

    def finish(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            done.rename(folder / "done.json")

    monkeypatch.setattr("siesta.experiment.codes.time.sleep", finish)
    monkeypatch.setattr(codes, "_fill", lambda *_: pytest.fail("it was coded again"))
    assert len(coded(train, learner.pipeline).codes) == 20
    assert len(waited) == 2
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
@pytest.mark.parametrize("progress", [None, b"{}", b"[]", b'{"done": 6, "seconds": 1, "code_bytes": 32}'])
def test_a_damaged_cache_is_made_anew(
    learner: Siesta, train: Split, name: str, content: bytes | None, progress: bytes | None
) -> None:
    whole = np.array(coded(train, learner.pipeline).codes)
    (folder,) = cache_folder().iterdir()
    for file, data in ((name, content), ("progress.json", progress)):
        (folder / file).unlink()
        if data is not None:
            (folder / file).write_bytes(data)
    assert (coded(train, learner.pipeline).codes == whole).all()
