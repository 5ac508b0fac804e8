"""A small experiment on four colours in two steps, and runs written without training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import MakePictures
from tests.experiment.toys import make_cache
from tests.experiment.written_runs import write_run
from tests.small import SMALL, register_small

WriteConfig = Callable[..., Path]

_CONFIG = """
name = "toy"

[data]
dataset = "image_folder"
path = "{path}"
image_size = 32

[network]
backbone = "{network}"

[orders.class_incremental]
classes_per_step = 2

[orders.iid]
steps = 2

[methods.siesta]
updates = 16
batch_size = 4

[methods.remind]
rehearsals = 2
rate = 0.01

[methods.ncm]
"""


@pytest.fixture(autouse=True, scope="package")
def _small_network() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register_small(patch)
        yield


@pytest.fixture
def colours(tmp_path: Path, make_pictures: MakePictures) -> Path:
    """An image folder with a training and a test set."""
    labels = [f"colour {number}" for number in range(4)]
    make_pictures(tmp_path / "colours" / "train", labels, each=5)
    make_pictures(tmp_path / "colours" / "test", labels, each=3, seed=1)
    return tmp_path / "colours"


@pytest.fixture(scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of codes and graphs for all tests, which use the same images and networks."""
    return make_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def write_config(tmp_path: Path, colours: Path, _cache: Path, monkeypatch: pytest.MonkeyPatch) -> WriteConfig:
    """Returns a function that writes the config, with a part of its text replaced."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(_cache))

    def write(old: str = "", new: str = "") -> Path:
        text = _CONFIG.format(path=colours, network=SMALL)
        assert old in text
        file = tmp_path / "toy.toml"
        file.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of five methods, two orders and two seeds, and one unfinished run; shared, so to be read only."""
    tmp_path = tmp_path_factory.mktemp("out")
    for order in ("class_incremental", "iid"):
        for seed in (0, 1):
            for method, right in (("siesta", 0.7), ("siesta_awake", 0.5), ("remind", 0.4), ("slda", 0.5)):
                write_run(tmp_path / "toy", method, order, seed, right=right)
        write_run(tmp_path / "toy", "offline", order, right=0.8)
    write_run(tmp_path / "toy", "ncm", steps=2, done=False)
    return tmp_path / "toy"
