"""Learning from and predicting for labelled images or vectors, wherever they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from siesta.errors import BadInput
from siesta.learner import SAMPLES_PER_TRANSACTION, Siesta
from siesta.pipeline import InputLike, batched
from siesta.store import clean_label

__all__ = ["LabelledSource", "LearnedFile", "PredictedFile", "learn_sources", "predict_sources", "reason_for"]

Status = Literal["learned", "known", "unreadable", "ignored"]

_TOP = 5


@dataclass(frozen=True)
class LabelledSource:
    """A labelled image or vector that is not read yet.

    Attributes:
        path: The file; `FILE[n]` for row n of a file of vectors.
        label: Its label.
        given: What `Siesta.read` takes.
        key: Returns a 64-bit number by which a repeated run finds it; raises `BadInput` if the file cannot be read.
        stray: Whether it is left out without a fuss if it cannot be read, because its name is not that of an image.
    """

    path: Path
    label: str
    given: InputLike
    key: Callable[[], int]
    stray: bool = False


@dataclass(frozen=True)
class LearnedFile:
    """The outcome of learning one image or vector.

    Attributes:
        path: The file; `FILE[n]` for row n of a file of vectors.
        status: Learned now, known from an earlier run, unreadable, or ignored because its name is not that of an image.
        reason: Why it is unreadable or ignored.
        sample: The id of its sample; None if it is unreadable or ignored.
    """

    path: Path
    status: Status
    reason: str = ""
    sample: int | None = None


@dataclass(frozen=True)
class PredictedFile:
    """The prediction for one image or vector.

    Attributes:
        path: The file; `FILE[n]` for row n of a file of vectors.
        label: Its true label.
        top: The five best labels; empty if the file is unreadable.
        reason: Why it is unreadable.
        familiarity: How certain the best label is and how familiar the input looks; see `Prediction`.
        stray: Whether it was left out because its name is not that of an image.
    """

    path: Path
    label: str
    top: tuple[str, ...]
    reason: str = ""
    familiarity: float = 0.0
    stray: bool = False


def learn_sources(learner: Siesta, sources: Iterable[LabelledSource]) -> Iterator[LearnedFile]:
    """Learn what is not known yet; yield each outcome once its transaction is committed."""
    for batch in batched(sources, SAMPLES_PER_TRANSACTION):
        outcomes: list[LearnedFile] = []
        taught: list[tuple[npt.NDArray[Any], str, int]] = []
        for source in batch:
            try:
                key = source.key()
                known = learner.known_keys([key])
                if known:
                    outcomes.append(LearnedFile(source.path, "known", sample=known[key]))
                    continue
                taught.append((learner.read(source.given), source.label, key))
                outcomes.append(LearnedFile(source.path, "learned"))
            except BadInput as error:
                status: Status = "ignored" if source.stray else "unreadable"
                outcomes.append(LearnedFile(source.path, status, reason_for(source.path, source.given, error)))
        ids = iter(learner.learn_many(*zip(*taught, strict=True)) if taught else ())
        for outcome in outcomes:
            yield replace(outcome, sample=next(ids)) if outcome.status == "learned" else outcome


def predict_sources(learner: Siesta, sources: Iterable[LabelledSource]) -> Iterator[PredictedFile]:
    """Yield a prediction for each source."""
    for batch in batched(sources, SAMPLES_PER_TRANSACTION):
        read: dict[int, npt.NDArray[Any]] = {}
        reasons: dict[int, str] = {}
        for number, source in enumerate(batch):
            try:
                read[number] = learner.read(source.given)
            except BadInput as error:
                reasons[number] = reason_for(source.path, source.given, error)
        answers = dict(zip(read, learner.predict_many(read.values(), _TOP), strict=True))
        for number, source in enumerate(batch):
            prediction = answers.get(number)
            top = () if prediction is None else tuple(name for name, _ in prediction.top)
            familiarity = 0.0 if prediction is None else prediction.familiarity
            label, reason = clean_label(source.label), reasons.get(number, "")
            yield PredictedFile(source.path, label, top, reason, familiarity, source.stray and bool(reason))


def reason_for(path: Path, given: InputLike, error: BadInput) -> str:
    """Return why an input cannot be used; the sentence about a vector does not say yet which one it is."""
    return str(error) if isinstance(given, Path) else f"{path}: {error}"
