"""What is loaded follows the store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.errors import BadInput, DiskRefused
from siesta.head import Head
from tests.learner.colours import labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of


def test_many_readers_and_one_writer_can_open_a_learner(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(2))
    path = tmp_path / "colours.siesta"
    with Siesta.open(path, read_only=True) as reader:
        assert reader.predict_one(picture("red")) == learner.predict_one(picture("red"))
        with pytest.raises(BadInput, match="cannot be written"):
            reader.learn_one(picture("red"), "red")
    with subprocess.Popen(
        [sys.executable, "-c", f"from siesta import Siesta; Siesta.open({str(path)!r})"],
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        assert f"being taught by process {os.getpid()}" in other.communicate()[1]


def test_the_stored_head_has_the_classes_of_the_last_sleep() -> None:
    """The generation's head plus the store's sums is all there is."""
    learner = create_small(memory="100KB")
    learner.learn_many(*labelled_pictures(3))
    assert len(Head.from_state(store_of(learner).snapshot().weights["head"])) == 0
    learner.sleep(updates=8, batch_size=8)
    assert len(Head.from_state(store_of(learner).snapshot().weights["head"])) == 3


def test_another_process_is_followed(learner: Siesta, tmp_path: Path) -> None:
    path = tmp_path / "colours.siesta"
    learner.learn_many(*labelled_pictures(2))
    with Siesta.open(path, read_only=True) as reader:
        version = reader.data_version()
        assert reader.data_version() == version
        learner.learn_one(picture("grey"), "grey")
        assert reader.data_version() != version
        assert reader.predict_one(picture("grey")) == learner.predict_one(picture("grey"))
        learner.sleep(updates=4, batch_size=4)
        assert (reader.generation, reader.active_generation()) == (0, 1)
        assert reader.predict_one(picture("red")) == learner.predict_one(picture("red"))
        assert reader.generation == 1
        learner.forget("grey")
        assert {label for label, _ in reader.predict_one(picture("grey")).top} == {"red", "green", "blue"}


def test_a_folder_that_was_moved_is_noticed(learner: Siesta, tmp_path: Path) -> None:
    learner.check_folder()
    (tmp_path / "colours.siesta").rename(tmp_path / "moved.siesta")
    with pytest.raises(DiskRefused, match="removed, moved or replaced"):
        learner.check_folder()
