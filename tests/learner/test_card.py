"""The facts of a learner's card, against the store and the learner's own answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.images import Pixels
from siesta.learner.card import Accuracy, read_card
from siesta.service.uploads import make_thumbnail
from siesta.store import Store
from tests.learner.colours import labelled_pictures

LABELS = ["red", "green", "blue"]


def taught(path: Path, count: int, *, noise: bool = False) -> list[Pixels]:
    """Create a learner with so many pictures of each colour; with noise it confuses some. Return the pictures."""
    images, labels = labelled_pictures(count)
    if noise:
        rng = np.random.default_rng(0)
        images = [rng.integers(0, 256, (32, 32, 3), dtype=np.uint8) for _ in images]
    with Siesta.create(path, memory="1MB", image_size=32) as learner:
        ids = learner.learn_many(images, labels)
        pictures = [learner.read(image) for image in images]
        learner.keep_thumbnails({sample: make_thumbnail(pixels) for sample, pixels in zip(ids, pictures, strict=True)})
    return pictures


def test_confusions_are_the_answers_to_held_out_samples(tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    taught(path, 24, noise=True)
    card = read_card(path)
    store = Store.open(path, "read")
    ids, classes = store.samples.held_out(store.samples.newest())
    labels = {record.id: record.label for record in store.classes.all()}
    _, codes = store.samples.get(ids)
    store.close()
    with Siesta.open(path, read_only=True) as learner:
        answers = [prediction.label for prediction in learner.predict_encoded(codes)]
    expected = Counter(zip((labels[one] for one in classes.tolist()), answers, strict=True))
    found = {(row, column): count for row, column, count in card.confusions()}
    found |= {(each.label, each.label): each.held_out.right for each in card.classes if each.held_out.right}
    assert found == expected and len(ids) > 3
    assert card.held_out.samples == len(ids)
    assert [count for _, _, count in card.confusions()] == sorted((c for _, _, c in card.confusions()), reverse=True)


def test_classes_have_counts_and_their_newest_pictures(tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    pictures = taught(path, 6)
    card = read_card(path)
    assert [(each.label, each.taught, each.stored) for each in card.classes] == [(label, 6, 6) for label in LABELS]
    assert card.classes[1].pictures[0] == make_thumbnail(pictures[[*LABELS * 6].index("green", 15)])
    assert all(len(each.pictures) == 4 for each in card.classes)
    assert card.held_out == Accuracy(0, 0) and card.held_out.interval is None and not card.optimistic
    assert (card.name, card.generation) == ("x.siesta", 0)


def test_pictures_end_where_the_card_would_be_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.siesta"
    pictures = taught(path, 2)
    monkeypatch.setattr("siesta.learner.card._PICTURE_BYTES", 4 * max(len(make_thumbnail(one)) for one in pictures))
    assert [len(each.pictures) for each in read_card(path).classes] == [2, 1, 1]


def test_after_a_sleep_it_says_which_samples_decided(tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    taught(path, 24)
    assert not read_card(path).optimistic
    with Siesta.open(path) as learner:
        report = learner.sleep(updates=8, batch_size=8, lr=0.001, tolerance=1)
    card = read_card(path)
    assert card.generation == 1 and card.optimistic and card.undecided is None
    assert (card.held_out.share, card.held_out.samples) == (report.accuracy_after, report.held_out)
