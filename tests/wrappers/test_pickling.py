"""Pickles of estimators without a learner, with one in memory, and with one in a folder."""

from __future__ import annotations

from pathlib import Path

from siesta import Siesta
from siesta.wrappers.pickling import restored, saved
from tests.learner.colours import labelled_pictures, picture


def test_an_estimator_without_a_learner_stays_as_it_is() -> None:
    for state in ({"seed": 1}, {"seed": 1, "learner": None}):
        assert restored(saved(state, "learner"), "learner") == state


def test_a_learner_in_memory_is_restored_and_learns_on() -> None:
    learner = Siesta.create(":memory:", memory="1MB", image_size=32)
    learner.learn_many(*labelled_pictures(3))
    copy = restored(saved({"learner": learner}, "learner"), "learner")["learner"]
    assert copy.predict_one(picture("red", 9)) == learner.predict_one(picture("red", 9))
    assert copy.learn_one(picture("grey"), "grey") == 10
    assert len(learner.classes()) == 3


def test_a_learner_in_a_folder_is_opened_again(tmp_path: Path) -> None:
    learner = Siesta.create(tmp_path / "l", memory="1MB", image_size=32)
    state = saved({"learner": learner}, "learner")
    assert state["learner"] == tmp_path / "l"
    with restored(state, "learner")["learner"] as copy:
        assert copy.classes() == []
