"""What a soak may find in a learner: the operations that were sent to it, and what each of them does to its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta import Siesta
from tests.learner.colours import COLOURS
from tests.stores import store_of

__all__ = ["CAPACITY", "Observed", "Operation", "carry_out", "choose", "differences", "image"]

CAPACITY = 60
"""Samples that fit, so that most of what is learned evicts something."""

_MAX_CLASSES = 12
_WEIGHTS = {
    "learn": 10,
    "ask": 4,
    "sleep": 1,
    "rename": 1,
    "merge": 0.5,
    "forget": 0.3,
    "forget_sample": 1,
    "correct": 1,
    "roll_back": 0.5,
}


@dataclass(frozen=True)
class Operation:
    """One call of a learner: the name of a method and its arguments; `number` is the first image of those it learns."""

    name: str
    arguments: tuple[Any, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Observed:
    """What can be seen of a learner.

    Attributes:
        labels: Labels of the stored samples, by id.
        codes: Their codes, by id.
        taught: Number of samples ever taught, by label.
        last: The newest id that a sample ever had.
        active: Number of the generation in use.
        newest: Number of the newest generation.
    """

    labels: Mapping[int, str]
    codes: Mapping[int, bytes]
    taught: Mapping[str, int]
    last: int
    active: int
    newest: int

    @classmethod
    def of(cls, learner: Siesta) -> Observed:
        """Return what can be seen now."""
        store = store_of(learner)
        ids, owners = store.samples.after(0, 2 * CAPACITY)
        present, codes = store.samples.get(ids)
        assert present.all()
        records = learner.classes()
        names = {record.id: record.label for record in records}
        return cls(
            labels={sample: names[owner] for sample, owner in zip(ids.tolist(), owners.tolist(), strict=True)},
            codes=dict(zip(ids.tolist(), (code.tobytes() for code in codes), strict=True)),
            taught={record.label: record.taught for record in records},
            last=store.samples.newest(),
            active=learner.active_generation(),
            newest=store.generations.newest(),
        )


def image(number: int) -> npt.NDArray[np.uint8]:
    """Return image `number`: one of a few colours with noise of its own."""
    rng = np.random.default_rng(number)
    colour = list(COLOURS.values())[number % len(COLOURS)]
    return (np.array(colour) + rng.normal(0, 30, (32, 32, 3))).clip(0, 255).astype(np.uint8)


def choose(before: Observed, number: int, rng: np.random.Generator) -> Operation:
    """Return a random operation that is possible now; image `number` is the first that was never used."""
    labels, ids = sorted(before.taught), sorted(before.labels)
    name = str(rng.choice(list(_WEIGHTS), p=np.array(list(_WEIGHTS.values())) / sum(_WEIGHTS.values())))
    if name == "sleep" and ids:
        return Operation("sleep", (8,))
    if name == "rename" and labels:
        return Operation("rename", (str(rng.choice(labels)), f"class {before.last}.{rng.integers(10**9)}"))
    if name == "merge" and len(labels) > 1:
        return Operation("merge", tuple(map(str, rng.choice(labels, 2, replace=False))))
    if name == "forget" and len(labels) > 1:
        return Operation("forget", (str(rng.choice(labels)),))
    if name == "forget_sample" and ids:
        return Operation("forget_sample", (int(rng.choice(ids)),))
    if name == "correct" and ids:
        sample = int(rng.choice(ids))
        others = [label for label in [*labels, f"class {number}"] if label != before.labels[sample]]
        return Operation("correct", (sample, str(rng.choice(others))))
    if name == "roll_back":
        return Operation("roll_back", (int(rng.integers(10)),))
    if name == "ask" and labels:
        return Operation("ask", (int(rng.integers(number + 1)),))
    known = labels if len(labels) >= _MAX_CLASSES else [*labels, f"class {number}"]
    return Operation("learn", tuple(map(str, rng.choice(known, int(rng.integers(1, 9))))), number)


def carry_out(learner: Siesta, operation: Operation) -> None:
    """Call the learner."""
    arguments = operation.arguments
    match operation.name:
        case "learn":
            learner.learn_many([image(operation.number + index) for index in range(len(arguments))], arguments)
        case "ask":
            assert learner.predict_one(image(arguments[0])).label in {record.label for record in learner.classes()}
        case "sleep":
            learner.sleep(updates=arguments[0], batch_size=4)
        case "roll_back":
            kept = learner.generations()
            learner.roll_back(kept[arguments[0] % len(kept)].number)
        case name:
            getattr(learner, name)(*arguments)


def differences(before: Observed, operation: Operation | None, after: Observed) -> list[str]:
    """Return how `after` differs from what it must be when the operation, or none, was carried out on `before`."""
    labels, taught, stored = _expected(before, operation)
    found = []
    if dict(after.taught) != {label: count for label, count in taught.items() if count}:
        found.append(f"taught {dict(after.taught)}, expected {dict(taught)}")
    if len(after.labels) != stored:
        found.append(f"{len(after.labels)} samples are stored, expected {stored}")
    wrong = {sample: label for sample, label in after.labels.items() if labels.get(sample) != label}
    if wrong:
        found.append(f"samples with another label or id than expected: {wrong}")
    if any(before.codes.get(sample, code) != code for sample, code in after.codes.items()):
        found.append("codes of samples have changed")
    name = operation.name if operation else ""
    if (after.newest - before.newest, after.active == before.active) not in _generations(name, after):
        found.append(f"generation {before.active} of {before.newest} became {after.active} of {after.newest}")
    return found


def _generations(name: str, after: Observed) -> set[tuple[int, bool]]:
    """Return by how much the newest generation may grow, with whether the active one stays the same."""
    if name == "sleep":  # its weights are not used if held-out accuracy fell
        return {(1, after.active != after.newest)}
    return {(0, True), (0, False)} if name == "roll_back" else {(0, True)}


def _expected(before: Observed, operation: Operation | None) -> tuple[dict[int, str], Counter[str], int]:
    """Return the labels that stored samples may have, the number taught by label, and how many samples are stored."""
    labels = dict(before.labels)
    taught = Counter(before.taught)
    match operation:
        case Operation("learn", new):
            labels |= {before.last + place: label for place, label in enumerate(new, start=1)}
            return labels, taught + Counter(new), min(len(labels), CAPACITY)
        case Operation("rename" | "merge", (old, new)):
            labels = {sample: new if label == old else label for sample, label in labels.items()}
            taught[new] += taught.pop(old)
        case Operation("forget", (old,)):
            labels = {sample: label for sample, label in labels.items() if label != old}
            del taught[old]
        case Operation("forget_sample", (sample,)):
            taught[labels.pop(sample)] -= 1
        case Operation("correct", (sample, new)):
            taught[labels.pop(sample)] -= 1
            taught[new] += 1
            labels[before.last + 1] = new
    return labels, taught, len(labels)
