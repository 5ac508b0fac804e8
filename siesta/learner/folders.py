"""Learning from and predicting for a folder of labelled images, `FOLDER/<label>/*`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from siesta.data import has_image_name, labelled_files
from siesta.errors import BadInput
from siesta.images import Pixels
from siesta.learner import SAMPLES_PER_TRANSACTION, Siesta
from siesta.pipeline import batched
from siesta.store import clean_label

__all__ = [
    "LearnedFile",
    "PredictedFile",
    "accuracies",
    "file_key",
    "learn_files",
    "predict_files",
    "rejection_rates",
    "valid_labelled_files",
]

Status = Literal["learned", "known", "unreadable", "ignored"]

_TOP = 5


@dataclass(frozen=True)
class LearnedFile:
    """The outcome of learning one file.

    Attributes:
        path: The file.
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
    """The prediction for one file.

    Attributes:
        path: The file.
        label: Its true label.
        top: The five best labels; empty if the file is unreadable.
        reason: Why it is unreadable.
        familiarity: How certain the best label is and how familiar the image looks; see `Prediction`.
    """

    path: Path
    label: str
    top: tuple[str, ...]
    reason: str = ""
    familiarity: float = 0.0


def learn_files(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[LearnedFile]:
    """Learn labelled files that are not known yet; yield each outcome once its transaction is committed.

    A file is identified by label, name and contents, so an interrupted run can be repeated and learns nothing twice.
    """
    for batch in batched(files, SAMPLES_PER_TRANSACTION):
        outcomes: list[LearnedFile] = []
        taught: list[tuple[Pixels, str, int]] = []
        for path, label in batch:
            try:
                key = file_key(path, label)
                known = learner.known_keys([key])
                if known:
                    outcomes.append(LearnedFile(path, "known", sample=known[key]))
                    continue
                taught.append((learner.read(path), label, key))
                outcomes.append(LearnedFile(path, "learned"))
            except BadInput as error:
                status: Status = "unreadable" if has_image_name(path) else "ignored"
                outcomes.append(LearnedFile(path, status, str(error)))
        ids = iter(learner.learn_many(*zip(*taught, strict=True)) if taught else ())
        for outcome in outcomes:
            yield replace(outcome, sample=next(ids)) if outcome.status == "learned" else outcome


def predict_files(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[PredictedFile]:
    """Yield a prediction for each labelled file."""
    for batch in batched(files, SAMPLES_PER_TRANSACTION):
        pixels: dict[Path, Pixels] = {}
        reasons: dict[Path, str] = {}
        for path, _ in batch:
            try:
                pixels[path] = learner.read(path)
            except BadInput as error:
                reasons[path] = str(error)
        answers = dict(zip(pixels, learner.predict_many(pixels.values(), _TOP), strict=True))
        for path, label in batch:
            prediction = answers.get(path)
            top = () if prediction is None else tuple(name for name, _ in prediction.top)
            familiarity = 0.0 if prediction is None else prediction.familiarity
            yield PredictedFile(path, clean_label(label), top, reasons.get(path, ""), familiarity)


def accuracies(answers: Iterable[PredictedFile]) -> dict[str, Any]:
    """Return top-1 and top-5 accuracy in percent over the readable files, overall and per class."""
    by_class: dict[str, list[PredictedFile]] = {}
    for answer in answers:
        if answer.top:
            by_class.setdefault(answer.label, []).append(answer)
    readable = [answer for group in by_class.values() for answer in group]
    return {**_accuracies(readable), "per_class": {label: _accuracies(group) for label, group in by_class.items()}}


def rejection_rates(answers: Iterable[PredictedFile], taught: Container[str], threshold: float) -> dict[str, Any]:
    """Return how many images of unknown and of known classes a threshold rejects, in percent."""
    readable = [answer for answer in answers if answer.top]
    known = [answer for answer in readable if answer.label in taught]
    unknown = [answer for answer in readable if answer.label not in taught]
    accepted = [answer for answer in known if answer.familiarity >= threshold]
    return {
        "taught": len(known),
        "taught_rejected": _percent(known, lambda answer: answer.familiarity < threshold),
        "right_of_answered": _percent(accepted, lambda answer: answer.top[0] == answer.label),
        "never_taught": len(unknown),
        "never_taught_rejected": _percent(unknown, lambda answer: answer.familiarity < threshold),
    }


def _percent(answers: list[PredictedFile], condition: Callable[[PredictedFile], bool]) -> float | None:
    return round(100 * sum(map(condition, answers)) / len(answers), 2) if answers else None


def _accuracies(answers: list[PredictedFile]) -> dict[str, Any]:
    share = 100 / max(len(answers), 1)
    return {
        "n": len(answers),
        "top1": round(share * sum(answer.top[0] == answer.label for answer in answers), 2),
        "top5": round(share * sum(answer.label in answer.top for answer in answers), 2),
    }


def file_key(path: Path, label: str) -> int:
    """Return 64 bits of a SHA-256 of label, file name and contents, as a signed integer."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except FileNotFoundError:
        raise BadInput(f"there is no image at {path}: check the path") from None
    except OSError as error:
        raise BadInput(f"{path} is not a readable image ({error.strerror}): check the file") from error
    for part in (label.encode("utf-8", "surrogatepass"), os.fsencode(path.name)):
        digest.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


def valid_labelled_files(folder: Path) -> list[tuple[Path, str]]:
    """Return the labelled files of a folder; raise `BadInput` if a label cannot be used."""
    files = labelled_files(folder)
    for label in {label for _, label in files}:
        clean_label(label)
    return files
