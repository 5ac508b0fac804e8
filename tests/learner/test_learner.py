"""The learner as its users meet it, across its modules: real weights, small images, a real store."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.engines import ENGINES
from siesta.errors import BadInput
from siesta.files import Lock
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small


def test_a_learner_learns_at_once_and_predicts_at_any_time(learner: Siesta) -> None:
    with pytest.raises(BadInput, match="was not taught anything yet"):
        learner.predict_one(picture("red"))
    assert learner.learn_one(picture("red"), "red") == 1
    assert learner.predict_one(picture("red", 1)).label == "red"
    learner.learn_one(picture("blue"), "blue")
    answer = learner.predict_one(picture("blue", 1))
    assert answer.label == "blue" and answer.top[0] == ("blue", answer.score) and len(answer.top) == 2
    assert sum(score for _, score in answer.top) == pytest.approx(1.0)


def test_a_learner_is_the_same_after_closing_and_opening(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(5))
    learner.sleep(updates=16, batch_size=8)
    learner.learn_many(*labelled_pictures(2, ("grey",)))
    asked = [picture(label, 50) for label in COLOURS]
    answers = learner.predict_many(asked)
    facts = learner.info()
    vectors = learner.head.weights().copy()
    learner.close()
    for read_only in (False, True):
        with Siesta.open(tmp_path / "colours.siesta", read_only=read_only) as again:
            assert again.predict_many(asked) == answers and np.array_equal(again.head.weights(), vectors)
            assert replace(again.info(), bytes=facts.bytes) == facts


def test_a_learner_in_memory_equals_one_on_disk(learner: Siesta) -> None:
    twin = create_small(memory="100KB")
    for some in (learner, twin):
        some.learn_many(*labelled_pictures(4))
        some.sleep(updates=16, batch_size=8)
        some.learn_many(*labelled_pictures(1, ("grey",)))
    assert np.array_equal(learner.head.weights(), twin.head.weights())
    assert learner.predict_one(picture("grey")) == twin.predict_one(picture("grey"))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_predictions(learner: Siesta, tmp_path: Path, engine: str) -> None:
    learner.learn_many(*labelled_pictures(4))
    learner.sleep(updates=16, batch_size=8)
    asked = [picture(label, 50) for label in COLOURS]
    expected = learner.predict_many(asked)
    with Siesta.open(tmp_path / "colours.siesta", read_only=True, engine=engine) as other:
        for mine, theirs in zip(expected, other.predict_many(asked), strict=True):
            assert mine.label == theirs.label and mine.score == pytest.approx(theirs.score, abs=1e-3)


def test_a_change_of_the_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learner = create_small("here.siesta")
    learner.learn_many(*labelled_pictures(2))
    monkeypatch.chdir("/")
    assert learner.sleep(updates=8, batch_size=4).generation == 1


def test_encoded_samples_are_learned_and_predicted_like_images() -> None:
    images, labels = labelled_pictures(15)
    straight, detour = (create_small(memory="5KB") for _ in range(2))
    codes = detour.encode(iter(images))
    assert codes.shape == (45, 32) and codes.dtype == np.uint8
    assert straight.learn_many(images, labels, range(45)) == detour.learn_encoded(codes, labels, range(45))
    assert np.array_equal(straight.head.weights(), detour.head.weights()) and detour.known_keys([44, 45]) == {44: 45}
    assert straight.info().classes == detour.info().classes
    assert straight.predict_many(images, top=2) == detour.predict_encoded(codes, top=2)
    nothing = detour.encode([])
    assert detour.predict_encoded(nothing) == [] and detour.learn_encoded(nothing, []) == []


def test_a_newer_writer_in_the_same_process_takes_over(learner: Siesta, tmp_path: Path) -> None:
    """The example of the README does so: create, teach, open again."""
    learner.learn_many(*labelled_pictures(2))
    newer = Siesta.open(tmp_path / "colours.siesta")
    assert newer.learn_one(picture("red"), "red") == 7
    with pytest.raises(BadInput, match="replaced by a newer one"):
        learner.learn_one(picture("red"), "red")


def test_a_deleted_learner_releases_its_lock(tmp_path: Path) -> None:
    learner = create_small(tmp_path / "x.siesta")
    del learner
    gc.collect()
    Lock(tmp_path / "x.siesta" / "lock", str).release()


def test_a_failed_open_leaves_the_open_writer_alone(learner: Siesta, tmp_path: Path) -> None:
    for wrong in ({"engine": "tpu"}, {"device": "abacus"}):
        with pytest.raises(BadInput):
            Siesta.open(tmp_path / "colours.siesta", **wrong)  # type: ignore[arg-type]
    assert learner.learn_one(picture("red"), "red") == 1


def test_missing_or_damaged_graphs_are_exported_again(learner: Siesta, tmp_path: Path) -> None:
    learner.learn_many(*labelled_pictures(2))
    answer = learner.predict_one(picture("red"))
    file = tmp_path / "colours.siesta" / "graphs.safetensors"
    for spoil in (lambda: file.write_bytes(b"spoilt"), file.unlink):
        spoil()
        with Siesta.open(tmp_path / "colours.siesta", read_only=True) as reader:
            assert reader.predict_one(picture("red")) == answer
