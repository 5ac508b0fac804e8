"""Learning from and predicting for a folder of labelled images, `FOLDER/<label>/*`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from siesta.data import has_image_name, labelled_files
from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.sources import LabelledSource, LearnedFile, PredictedFile, learn_sources, predict_sources
from siesta.store import clean_label

__all__ = [
    "LearnedFile",
    "PredictedFile",
    "accuracies",
    "file_key",
    "image_sources",
    "learn_files",
    "predict_files",
    "rejection_rates",
    "valid_labelled_files",
]


def learn_files(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[LearnedFile]:
    """Learn labelled files that are not known yet; yield each outcome once its transaction is committed.

    A file is identified by label, name and contents, so an interrupted run can be repeated and learns nothing twice.
    """
    return learn_sources(learner, map(_source, files))


def predict_files(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[PredictedFile]:
    """Yield a prediction for each labelled file."""
    return predict_sources(learner, map(_source, files))


def image_sources(folder: Path) -> list[LabelledSource]:
    """Return the labelled images of a folder; raise `BadInput` if a label cannot be used."""
    return list(map(_source, valid_labelled_files(folder)))


def _source(file: tuple[Path, str]) -> LabelledSource:
    path, label = file
    return LabelledSource(path, label, path, partial(file_key, path, label), stray=not has_image_name(path))


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
