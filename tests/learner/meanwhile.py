"""What happens to a learner while another machine sleeps for it, and what can be seen of the result."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from siesta import Siesta
from siesta.learner.pack import pack_learner
from siesta.learner.packed_sleep import sleep_on_pack
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.store import Store
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.small import create_small
from tests.stores import store_of

__all__ = ["OPTIONS", "Step", "apply_step", "assert_close", "copy_of", "outcome", "packed_and_slept", "rows", "seen"]

OPTIONS = SleepOptions(updates=16, batch_size=8)
Step = tuple[Any, ...]
"""An operation and its arguments; samples and classes are given as places among those that there are."""


def packed_and_slept(folder: Path, memory: str = "1MB", head: str = "discriminant") -> None:
    """Make `folder/device.siesta`, its pack `folder/packed` before a sleep, and the same pack `folder/slept` after."""
    path = folder / "device.siesta"
    with create_small(path, memory=memory, head=head) as learner:
        learner.learn_many(*labelled_pictures(22))
    pack_learner(path, folder / "packed")
    shutil.copy(folder / "packed", folder / "slept")
    sleep_on_pack(folder / "slept", OPTIONS)


def copy_of(path: Path, target: Path) -> Path:
    return Path(shutil.copytree(path, target))


def apply_step(learner: Siesta, step: Step) -> None:
    """Carry out a step if it is possible."""
    ids, labels = store_of(learner).samples.ids().tolist(), [known.label for known in learner.classes()]
    match step:
        case ("learn", label, number):
            learner.learn_one(picture(list(COLOURS)[label], 100 + number), list(COLOURS)[label])
        case ("forget sample", place):
            learner.forget_sample(ids[place % len(ids)])
        case ("correct", place, label) if learner.label_of(ids[place % len(ids)]) != list(COLOURS)[label]:
            learner.correct(ids[place % len(ids)], list(COLOURS)[label])
        case ("merge", one, other) if labels[one % len(labels)] != labels[other % len(labels)]:
            learner.merge(labels[one % len(labels)], labels[other % len(labels)])
        case ("rename", place, name) if name not in labels:
            learner.rename(labels[place % len(labels)], name)
        case ("reject", place, number):
            learner.reject(picture("grey", 200 + number), labels[place % len(labels)])
        case ("forget", place) if len(labels) > 1:
            learner.forget(labels[place % len(labels)])


def outcome(report: SleepReport) -> tuple[int, bool]:
    """Return what a take has made: the number of the generation, and whether it is used."""
    return report.generation, report.used


def rows(path: Path) -> dict[str, Any]:
    """Return everything of a learner that is exact: classes, samples with codes and counts, and the head."""
    with contextlib.closing(Store.open(path, "read")) as store:
        connection = store.session.connection
        head = store.snapshot().weights["head"]
        return {
            "classes": connection.execute("SELECT * FROM classes ORDER BY id").fetchall(),
            "samples": connection.execute("SELECT id, class_id, rehearsed, held FROM samples ORDER BY id").fetchall(),
            "codes": connection.execute("SELECT * FROM codes ORDER BY id").fetchall(),
            "counted since": connection.execute("SELECT class_id, count FROM recent ORDER BY class_id").fetchall(),
            "generation": store.generations.active(),
            "head": {name: array.tolist() for name, array in head.items()},
        }


def seen(path: Path) -> list[dict[str, float]]:
    """Return the probability of each label for a few pictures."""
    asked = [picture(label, 99) for label in COLOURS]
    with Siesta.open(path) as learner:
        if learner._state.discriminant is not None:  # with all samples in its covariance, whenever they came
            learner._state.discriminant = learner._state.discriminant.folded()
        return [dict(answer.top) for answer in learner.predict_many(asked, top=9)]


def assert_close(one: list[dict[str, float]], other: list[dict[str, float]]) -> None:
    """Fail unless two lists of predictions agree."""
    for mine, its in zip(one, other, strict=True):
        assert mine.keys() == its.keys()
        assert np.allclose([mine[label] for label in mine], [its[label] for label in mine], rtol=1e-3, atol=1e-5)
