"""Learning online: what is stored, how the class means move, and what is refused."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from siesta import Siesta
from siesta.codecs import relative_error
from siesta.contracts import Progress
from siesta.errors import BadInput, DiskRefused
from siesta.learner.info import ClassInfo
from siesta.learner.state import LearnerState
from siesta.store import Store, StoredSample
from siesta.store.classes import Classes
from siesta.store.session import Session
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of


def test_images_can_be_paths_pil_images_or_arrays(learner: Siesta, tmp_path: Path) -> None:
    pixels = picture("red")
    Image.fromarray(pixels).resize((64, 64)).save(tmp_path / "red.png")
    learner.learn_many([str(tmp_path / "red.png"), tmp_path / "red.png", Image.fromarray(pixels), pixels], ["red"] * 4)
    assert learner.info().classes == (ClassInfo("red", taught=4, stored=4),)


def test_a_failed_learn_many_reports_how_many_samples_are_stored(learner: Siesta) -> None:
    images, labels = labelled_pictures(14)
    with pytest.raises(BadInput, match="no image") as caught:
        learner.learn_many([*images[:40], "gone.png", *images[40:]], [*labels, "red"])
    assert caught.value.safe == learner.info().samples.stored == 32
    with pytest.raises(BadInput, match="gone") as caught:
        learner.learn_one("gone.png", "red")
    assert caught.value.safe == 0
    for keys in (None, range(3)):
        with pytest.raises(BadInput, match="samples, labels and keys differ"):
            learner.learn_many(images[:2], labels[: 1 if keys is None else 2], keys)


def test_a_refused_sample_is_reported_even_if_nothing_can_be_loaded_then(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner.learn_one(picture("red"), "red")

    def refuse(*_: object, **__: object) -> None:
        raise DiskRefused("the disk is full")

    def unreadable(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    with monkeypatch.context() as patch, pytest.raises(DiskRefused, match="full"):
        patch.setattr(Store, "add", refuse)
        patch.setattr(LearnerState, "load", unreadable)
        learner.learn_one(picture("blue"), "blue")
    assert learner.predict_one(picture("red")).label == "red"


def test_a_stored_sample_is_acknowledged_even_if_its_mean_cannot_be_read(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Store.add

    def refuse(*_: object) -> None:
        raise DiskRefused("refused")

    def add_to_a_disk_that_fails_then(*arguments: Any) -> list[StoredSample]:
        stored = add(*arguments)
        patch.setattr(Classes, "recent", refuse)
        return stored

    learner.learn_one(picture("red"), "red")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", add_to_a_disk_that_fails_then)
        assert learner.learn_one(picture("blue"), "blue") == 2
    assert learner.predict_one(picture("blue")).label == "blue"


def test_learn_many_equals_repeated_learn_one() -> None:
    images, labels = labelled_pictures(20)
    many, one = (create_small(memory="2KB") for _ in range(2))
    many_ids = many.learn_many(images, labels)
    one_ids = [one.learn_one(image, label) for image, label in zip(images, labels, strict=True)]
    assert many_ids == one_ids and many.info().classes == one.info().classes
    # a batch may round differently from a single picture, so latents are equal only nearly
    assert np.allclose(many.head.weights(), one.head.weights(), atol=1e-3)
    assert many.info().samples.stored == many.info().samples.capacity < 60


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((2, 31), np.uint8),
        np.zeros((2, 32), np.int64),
        np.zeros(32, np.uint8),
        np.uint8(3),
        np.array(3, np.uint8),
        [[0] * 32],
    ],
)
def test_codes_of_another_shape_or_type_are_refused(learner: Siesta, codes: Any) -> None:
    learner.learn_one(picture("red"), "red")
    for use in (lambda: learner.learn_encoded(codes, ["red"]), lambda: learner.predict_encoded(codes)):
        with pytest.raises(BadInput, match=r"codes of this learner are \(samples, 32\) of uint8, not "):
            use()
    assert learner.info().samples.stored == 1


def test_every_code_needs_one_label_and_one_key(learner: Siesta) -> None:
    codes = learner.encode([picture("red")])
    for labels, keys in ((["red", "red"], None), (["red"], []), ([], None)):
        with pytest.raises(BadInput, match="one of each for every sample"):
            learner.learn_encoded(codes, labels, keys)
    assert learner.info().samples.stored == 0


def test_running_means_equal_the_mean_of_all_features(learner: Siesta) -> None:
    images, labels = labelled_pictures(10)
    learner.learn_many(images, labels)
    for row, label in enumerate(("red", "green", "blue")):
        codes = learner.encode(image for image, name in zip(images, labels, strict=True) if name == label)
        expected = learner.pipeline.features(codes).mean(axis=0, dtype=np.float64)
        assert np.allclose(learner.head.weights()[row], expected, rtol=1e-4, atol=1e-4)


def test_an_interrupt_after_a_commit_leaves_budget_and_means_right(
    learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = Session.transaction

    @contextlib.contextmanager
    def interrupted(session: Session) -> Iterator[None]:
        with transaction(session):
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "transaction", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn_one(picture("red"), "red")
    monkeypatch.undo()
    assert learner.info().samples.stored == 1 and learner.predict_one(picture("red")).label == "red"


def test_invalid_samples_are_refused_and_leave_nothing(learner: Siesta) -> None:
    for image, label, words in (
        (picture("red"), "", "1 to 200 characters"),
        (picture("red"), "a\nb", "control characters"),
        (np.zeros((3, 32, 32), np.uint8), "red", "an image array has shape"),
        ("nowhere.jpg", "red", "no image at nowhere.jpg"),
    ):
        with pytest.raises(BadInput, match=words):
            learner.learn_one(image, label)
    with pytest.raises(BadInput, match="samples, labels and keys differ"):
        learner.learn_many([picture("red")], [])
    assert learner.info().classes == () and len(learner.head) == 0


def test_learning_during_a_sleep_is_refused(learner: Siesta) -> None:
    learner.learn_many(*labelled_pictures(2))

    def teach(_progress: Progress) -> None:
        learner.learn_one(picture("grey"), "grey")

    with pytest.raises(BadInput, match="the learner is asleep"):
        learner.sleep(updates=8, batch_size=4, on_progress=teach)
    learner.learn_one(picture("grey"), "grey")
    assert learner.predict_one(picture("grey")).label in COLOURS


def test_the_codec_is_measured_on_one_in_eight_samples() -> None:
    images = [np.random.default_rng(seed).integers(0, 256, (32, 32, 3), dtype=np.uint8) for seed in range(40)]
    with create_small() as learner:
        for image in images:
            learner.learn_one(image, "snow")
        measured = [relative_error(learner.pipeline.codec, learner.pipeline.latents([image])) for image in images[7::8]]
        assert store_of(learner).drift.read()[0] == 5
        assert learner.info().codec.error_lately == pytest.approx(np.mean(measured), rel=1e-5)
        learner.learn_many([images[0]] * 64, ["snow"] * 64)
        assert store_of(learner).drift.read()[0] == 7, "once in each transaction"
