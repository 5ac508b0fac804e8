"""A rejected label falls for what looks like the image, with both heads, through sleeps, edits and other processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.learner.export import export_learner
from siesta.learner.rejections import Rejections
from siesta.learner.state import LearnerState
from tests.learner.colours import labelled_pictures, picture
from tests.stores import store_of


def make(path: Path | str, head: str = "discriminant") -> Siesta:
    learner = Siesta.create(path, memory="1MB", image_size=32, head=head)
    learner.learn_many(*labelled_pictures(6))
    return learner


def score(learner: Siesta, label: str, seed: int = 99, colour: str = "red") -> float:
    return dict(learner.predict_one(picture(colour, seed)).top)[label]


@pytest.mark.parametrize("head", ["discriminant", "cosine"])
def test_the_score_falls_for_the_image_and_for_no_other_class(head: str) -> None:
    learner = make(":memory:", head)
    before = {colour: learner.predict_one(picture(colour, 99)) for colour in ("red", "green", "blue")}
    rejected = learner.reject(picture("red", 99), "red")
    after = learner.predict_one(picture("red", 99))
    assert dict(after.top)["red"] == 0.0
    assert after.label != "red"
    for label in ("green", "blue"):  # no score rises: that it is not red says nothing for the others
        assert dict(after.top)[label] == dict(before["red"].top)[label]
        assert learner.predict_one(picture(label, 99)) == before[label]
    learner.forget_sample(rejected)
    assert learner.predict_one(picture("red", 99)) == before["red"]


def test_where_every_label_is_rejected_the_answer_is_unknown() -> None:
    learner = Siesta.create(":memory:", memory="1MB", image_size=32)
    learner.learn_many([picture("red", 1), picture("red", 2)], ["red", "red"])
    learner.reject(picture("blue"), "red")
    answer = learner.predict_one(picture("blue"))
    assert (answer.label, answer.known, answer.score) == ("unknown", False, 0.0)
    assert learner.predict_one(picture("red", 3)).label == "red"


def test_it_survives_a_sleep_a_roll_back_and_opening_again(tmp_path: Path) -> None:
    with make(tmp_path / "l") as learner:
        learner.reject(picture("red", 99), "red")
        learner.sleep(updates=8, batch_size=4)
        assert score(learner, "red") == 0.0
        learner.roll_back(0)
        assert score(learner, "red") == 0.0
    with Siesta.open(tmp_path / "l", read_only=True) as learner:
        assert learner.rejections() == {19: "red"} == learner.info().rejections
        assert score(learner, "red") == 0.0


def test_another_process_sees_it_and_an_edit_of_its_class(tmp_path: Path) -> None:
    with make(tmp_path / "l") as writer, Siesta.open(tmp_path / "l", read_only=True) as reader:
        before = score(reader, "red")
        assert before > 0.5
        rejected = writer.reject(picture("red", 99), "red")
        assert score(reader, "red") == 0.0
        writer.merge("red", "green")
        assert score(reader, "green") == 0.0
        assert writer.rejections() == {rejected: "green"}
        writer.learn_one(picture("red", 99), "green")
        assert writer.rejections() == {} == reader.rejections()
        assert score(reader, "green") > 0.5


def test_a_roll_back_to_before_a_class_was_known_leaves_its_rejections_without_effect() -> None:
    rejections = Rejections()
    store = store_of(make(":memory:"))
    rejected = store.reject("red", bytes(store.code_bytes))
    rejections.use(store.rejections.classes(), 0)
    rejections.embed(store, LearnerState(store, "cpu", None).pipeline)
    ones = rejections.factors(np.ones((2, 1280), np.float32), np.zeros(1280, np.float32), np.array([2, 3]))
    assert (ones == 1).all()
    assert len(rejections) == 1
    store.rejections.remove(rejected)
    rejections.use({rejected: 1}, 1)
    rejections.embed(store, LearnerState(store, "cpu", None).pipeline)  # it is gone meanwhile


def test_another_codec_encodes_them_again() -> None:
    learner = make(":memory:")
    learner.reject(picture("red", 99), "red")
    before = store_of(learner).rejections.get([19])
    codec = learner.pipeline.codec
    arrays = dict(codec.state())
    arrays["centroids"] = arrays["centroids"][:, ::-1].copy()  # the same vectors under other codes
    learner.renew_codec(type(codec).from_state(arrays), 0.1, {})
    assert store_of(learner).rejections.get([19]) != before
    assert score(learner, "red") < 0.01


def test_wrong_input_changes_nothing() -> None:
    learner = make(":memory:")
    with pytest.raises(BadInput, match="no class 'pink'"):
        learner.reject(picture("red"), "pink")
    with pytest.raises(BadInput, match="there is no sample 77"):
        learner.forget_sample(77)
    assert learner.rejections() == {}


def test_an_export_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    with make(tmp_path / "l") as learner:
        learner.reject(picture("red", 99), "red")
    assert export_learner(tmp_path / "l", tmp_path / "l.onnx").rejections == 1
