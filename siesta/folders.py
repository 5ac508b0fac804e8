"""Teaching from, and asking about, a folder of pictures: `FOLDER/<label>/*`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from siesta.data import labelled_files
from siesta.errors import BadInput
from siesta.images import Pixels
from siesta.learner import Siesta
from siesta.pipeline import groups
from siesta.store import clean_label

__all__ = ["Answer", "Outcome", "ask", "checked_files", "key_of", "rejections", "score", "teach"]

_FILES_AT_ONCE = 32
_TOP = 5


@dataclass(frozen=True)
class Outcome:
    """What became of one file: the sample that it is, or the reason why an unreadable one was skipped."""

    path: Path
    status: Literal["learned", "known", "unreadable"]
    reason: str = ""
    sample: int | None = None


@dataclass(frozen=True)
class Answer:
    """The five best labels for one file (none when it was unreadable), the right one, and the score of the best."""

    path: Path
    label: str
    top: tuple[str, ...]
    reason: str = ""
    score: float = 0.0


def teach(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[Outcome]:
    """Teaches labelled files, those taught before left out; each outcome comes when it is stored.

    A file is known by its label, name and contents, so stopping anywhere and starting again teaches nothing twice.
    """
    for group in groups(files, _FILES_AT_ONCE):
        outcomes: list[Outcome] = []
        taught: list[tuple[Pixels, str, int]] = []
        for path, label in group:
            try:
                key = key_of(path, label)
                known = learner.known_keys([key])
                if known:
                    outcomes.append(Outcome(path, "known", sample=known[key]))
                    continue
                taught.append((learner.read(path), label, key))
                outcomes.append(Outcome(path, "learned"))
            except BadInput as error:
                outcomes.append(Outcome(path, "unreadable", str(error)))
        ids = iter(learner.learn_many(*zip(*taught, strict=True)) if taught else ())
        for outcome in outcomes:
            yield replace(outcome, sample=next(ids)) if outcome.status == "learned" else outcome


def ask(learner: Siesta, files: Iterable[tuple[Path, str]]) -> Iterator[Answer]:
    """Asks about labelled files."""
    for group in groups(files, _FILES_AT_ONCE):
        pixels: dict[Path, Pixels] = {}
        reasons: dict[Path, str] = {}
        for path, _ in group:
            try:
                pixels[path] = learner.read(path)
            except BadInput as error:
                reasons[path] = str(error)
        answers = dict(zip(pixels, learner.predict_many(pixels.values(), _TOP), strict=True))
        for path, label in group:
            found = answers.get(path)
            top = () if found is None else tuple(name for name, _ in found.top)
            yield Answer(path, clean_label(label), top, reasons.get(path, ""), 0.0 if found is None else found.score)


def score(answers: Iterable[Answer]) -> dict[str, Any]:
    """Accuracies in percent over the readable files: all, and class by class."""
    by_class: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.top:
            by_class.setdefault(answer.label, []).append(answer)
    everything = [answer for some in by_class.values() for answer in some]
    return {**_accuracies(everything), "per_class": {label: _accuracies(some) for label, some in by_class.items()}}


def rejections(answers: Iterable[Answer], taught: Container[str], threshold: float) -> dict[str, Any]:
    """What a threshold does: how much of what was never taught it rejects, at what cost in what was. In percent."""
    readable = [answer for answer in answers if answer.top]
    known, foreign = ([some for some in readable if (some.label in taught) == side] for side in (True, False))
    given = [answer for answer in known if answer.score >= threshold]
    return {
        "taught": len(known),
        "taught_rejected": _percent(known, lambda answer: answer.score < threshold),
        "right_of_answered": _percent(given, lambda answer: answer.top[0] == answer.label),
        "never_taught": len(foreign),
        "never_taught_rejected": _percent(foreign, lambda answer: answer.score < threshold),
    }


def _percent(answers: list[Answer], which: Callable[[Answer], bool]) -> float | None:
    return round(100 * sum(map(which, answers)) / len(answers), 2) if answers else None


def _accuracies(answers: list[Answer]) -> dict[str, Any]:
    share = 100 / max(len(answers), 1)
    return {
        "n": len(answers),
        "top1": round(share * sum(answer.top[0] == answer.label for answer in answers), 2),
        "top5": round(share * sum(answer.label in answer.top for answer in answers), 2),
    }


def key_of(path: Path, label: str) -> int:
    """64 bits of a hash over label, file name and contents, as SQLite's signed integer."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except FileNotFoundError:
        raise BadInput(f"there is no picture at {path}") from None
    except OSError as error:
        raise BadInput(f"{path} is not a readable picture ({error.strerror})") from error
    for part in (label.encode("utf-8", "surrogatepass"), os.fsencode(path.name)):
        digest.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


def checked_files(folder: Path) -> list[tuple[Path, str]]:
    """The labelled files of a folder, every label usable."""
    files = labelled_files(folder)
    for label in {label for _, label in files}:
        clean_label(label)
    return files
