"""A learner's card: what it knows and how well, as facts for a page to show."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.learner.info import LearnerInfo, learner_info
from siesta.learner.state import BATCH_SIZE, LearnerState
from siesta.sleep.binomial import interval_of
from siesta.sleep.held_out import HeldOutSamples
from siesta.sleep.round_limits import FEWEST_HELD_OUT
from siesta.store import Store

__all__ = ["Accuracy", "ClassCard", "LearnerCard", "read_card"]

_PICTURES = 4  # of a class
_PICTURE_BYTES = 1_000_000  # of all classes together


@dataclass(frozen=True)
class Accuracy:
    """Right answers to so many held-out samples.

    Example:
        >>> Accuracy(3, 4).share, Accuracy(0, 0).share
        (0.75, None)
    """

    right: int
    samples: int

    @property
    def share(self) -> float | None:
        """Their share; None without samples."""
        return self.right / self.samples if self.samples else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share; None without samples."""
        return interval_of(self.share, self.samples)


@dataclass(frozen=True)
class ClassCard:
    """A class: its counts of samples, answers to its held-out ones, and thumbnails of the newest samples as WebP."""

    label: str
    taught: int
    stored: int
    held_out: Accuracy
    pictures: tuple[bytes, ...]


@dataclass(frozen=True)
class LearnerCard:
    """What a card shows.

    Attributes:
        name: The name of the learner's folder.
        info: What `Siesta.info` returns.
        generation: Number of the weights in use.
        made: Date and time at which they were made.
        classes: All classes, oldest first.
        confusion: Number of held-out samples by true class (row) and answer (column), (K, K).
        undecided: Answers to those held-out samples that decided nothing about any sleep; None if all or none did.
        optimistic: Whether held-out samples decided about the weights in use, and none are left that did not.
    """

    name: str
    info: LearnerInfo
    generation: int
    made: str
    classes: tuple[ClassCard, ...]
    confusion: npt.NDArray[np.int64]
    undecided: Accuracy | None
    optimistic: bool

    @property
    def held_out(self) -> Accuracy:
        """Answers to all held-out samples."""
        return _accuracy(self.confusion)

    def confusions(self) -> list[tuple[str, str, int]]:
        """Return true class, answer and number of the wrong answers to held-out samples, most frequent first."""
        labels = [each.label for each in self.classes]
        wrong = self.confusion.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)]
        pairs = zip(*np.unravel_index(order, wrong.shape), strict=True)
        return [(labels[row], labels[column], int(wrong[row, column])) for row, column in pairs]


def read_card(path: str | Path) -> LearnerCard:
    """Return the card of the learner at `path`; its held-out samples are classified for it, with the weights in use."""
    with contextlib.closing(Store.open(Path(path), "read")) as store:
        state = LearnerState(store, "cpu", None)
        info = learner_info(store, state.pipeline.network)
        samples = HeldOutSamples.choose(store, store.samples.newest(), store.settings["seed"])
        deciding, measured = samples.halves()
        confusion = _confusion(state, deciding) + (unused := _confusion(state, measured))
        slept = any(report.get("used", True) for report in info.sleeps)
        split = min(len(deciding.ids), len(measured.ids)) >= FEWEST_HELD_OUT
        active = store.generations.get(state.generation)
        return LearnerCard(
            name=Path(path).resolve().name,
            info=info,
            generation=active.number,
            made=active.made,
            classes=tuple(_class_cards(store, confusion)),
            confusion=confusion,
            undecided=_accuracy(unused) if slept and split else None,
            optimistic=slept and not split and len(samples.ids) > 0,
        )


def _accuracy(confusion: npt.NDArray[np.int64]) -> Accuracy:
    return Accuracy(int(np.trace(confusion)), int(confusion.sum()))


def _confusion(state: LearnerState, samples: HeldOutSamples) -> npt.NDArray[np.int64]:
    """Return how many samples of each class (row) get the answer of each class (column), (K, K)."""
    rows = {record.id: row for row, record in enumerate(state.store.classes.all())}
    confusion = np.zeros((len(rows), len(rows)), np.int64)
    for start in range(0, len(samples.ids), BATCH_SIZE):
        batch = slice(start, start + BATCH_SIZE)
        present, codes = state.store.samples.get(samples.ids[batch])
        if len(codes):
            best = state.classifier.logits(state.pipeline.features(codes)).argmax(axis=1)
            answers = state.classifier.class_ids[best].tolist()
            for truth, answer in zip(samples.classes[batch][present].tolist(), answers, strict=True):
                confusion[rows[truth], rows[answer]] += 1
    return confusion


def _class_cards(store: Store, confusion: npt.NDArray[np.int64]) -> Iterator[ClassCard]:
    pictures = _pictures(store)
    for row, record in enumerate(store.classes.all()):
        held_out = Accuracy(int(confusion[row, row]), int(confusion[row].sum()))
        yield ClassCard(record.label, record.taught, record.stored, held_out, tuple(pictures.get(record.id, ())))


def _pictures(store: Store) -> dict[int, list[bytes]]:
    """Return thumbnails by class id: the newest of each class first, then the second of each, as far as there is room.

    A card is meant to be sent, and thousands of classes would make it large.
    """
    by_class = store.thumbnails.by_class()
    found: dict[int, list[bytes]] = {class_id: [] for class_id in by_class}
    left = _PICTURE_BYTES
    for place in range(_PICTURES):
        for class_id, ids in sorted(by_class.items()):
            picture = store.thumbnails.get(ids[place]) if place < len(ids) else None
            if picture is not None and len(picture) <= left:
                found[class_id].append(picture)
                left -= len(picture)
    return found
