"""The sleep of a packed learner, brought back: what was taught and edited meanwhile is counted in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, Damaged
from siesta.head import FeatureStatistics, Head
from siesta.head.kinds import DISCRIMINANT, head_of
from siesta.learner.packed_sleep import Arrays, SleptPack, read_slept
from siesta.learner.sleep import LOCK_PATIENCE
from siesta.learner.state import LearnerState
from siesta.sleep.counted_statistics import CountedStatistics, counted_anew
from siesta.sleep.delta_sums import DeltaSums
from siesta.sleep.report import SleepReport
from siesta.store import Store

__all__ = ["take_sleep"]

Edits = Iterable[Mapping[str, Any]]
_PACK = "pack"  # in the report of a generation: the pack that it came from


def take_sleep(path: str | Path, file: str | Path) -> SleepReport:
    """Bring the result of a sleep back into the learner that was packed.

    Other processes may learn meanwhile. Either the new weights are in use together with what was taught and edited
    since the pack was made, or nothing has changed.

    Args:
        path: The learner's directory.
        file: A pack that has slept; it is not changed.

    Returns:
        The report of the sleep, with the number of the new generation, and whether it is used; it is not if held-out
        accuracy fell too far.

    Raises:
        BadInput: The pack has not slept, is of another learner, was taken already, or the learner has slept since.
        Damaged: The file is damaged.
        Busy: The learner is asleep, or being changed.
    """
    slept = read_slept(Path(file))
    with contextlib.closing(Store.open(Path(path), "sleep")) as store:
        _refuse_taken(store, slept.pack)
        state = LearnerState(store, "cpu", None)
        with state.sleeping(LOCK_PATIENCE):
            return _take(state, slept, Path(file))


def _refuse_taken(store: Store, pack: str) -> None:
    """Raise `BadInput` if a generation came from the pack already."""
    if any(report.get(_PACK) == pack for report in store.generations.reports()):
        raise BadInput(f"this sleep was brought back to {store.path} already: `siesta generations` lists it")


def _take(state: LearnerState, slept: SleptPack, file: Path) -> SleepReport:
    store = state.store
    record, edits = store.packs.find(slept.pack)
    _check_top(slept.top, state.pipeline.network.top, file)
    head = _edited_head(Head.from_state(_checked_head(slept.head, state, file)), edits, record.newest)
    _check_classes(head, store, file)
    report = replace(slept.report, generation=record.last + 1)
    values = {**report.as_dict(), _PACK: record.id}
    tensors = {"top": slept.top, "head": head.state()}
    if not report.used:
        store.generations.add(tensors, record.newest, values)
        return report
    state.pipeline.load_top(slept.top)
    try:
        statistics = _statistics(state, slept.sums, edits, record.newest)
        rehearsed = np.repeat(slept.sums["rehearsed"], slept.sums["times"])
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise _unfit("sums", file) from error
    sums = DeltaSums(state.pipeline.features, head, statistics)
    store.swap.add(tensors, record.newest, values, sums, rehearsed)
    return report


def _edited_head(head: Head, edits: Edits, newest: int) -> Head:
    """Return the head after the edits since, as if they had been made after the sleep."""
    for edit in edits:
        match edit:
            case {"what": "merge", "classes": [source, target]}:
                head = head.with_merged(source, target)
            case {"what": "forget" | "correct", "sample": sample, "class": class_id}:
                head = head.without_sample(class_id) if sample <= newest else head
            case {"what": "forget", "class": class_id}:
                head = head.without_class(class_id)
            case {"what": "merge" | "forget" | "correct"}:  # of an older version, without ids of classes
                raise BadInput(f"the edit '{edit['what']}' since the pack cannot be repeated: pack again")
    return head


def _statistics(state: LearnerState, sums: Arrays, edits: Edits, newest: int) -> CountedStatistics | None:
    """Return the statistics under the new top of the samples that were packed.

    If samples were removed since, they are computed anew from those that are stored, so that no trace is left of the
    others.
    """
    kinds = {edit["what"] for edit in edits}
    if head_of(state.store.settings) != DISCRIMINANT or "counted" not in sums or kinds & {"forget", "correct"}:
        return counted_anew(state.store, state.pipeline, newest)
    prefix = "statistics."
    arrays = {name.removeprefix(prefix): array for name, array in sums.items() if name.startswith(prefix)}
    statistics = FeatureStatistics.from_arrays(arrays)
    for edit in edits:
        if edit["what"] == "merge":
            statistics.merge(*edit["classes"])
    known = {record.id for record in state.store.classes.all()}
    if statistics.gram.shape != (state.pipeline.spec.features,) * 2 or not known >= set(statistics.class_ids.tolist()):
        raise ValueError("statistics of another learner")
    return CountedStatistics.of(statistics, sums["counted"])


def _check_top(found: Arrays, known: Arrays, file: Path) -> None:
    """Raise `Damaged` unless weights have the names and shapes of the learner's top, and are finite numbers."""
    same = {name: (array.shape, array.dtype) for name, array in known.items()}
    if {name: (array.shape, array.dtype) for name, array in found.items()} != same or not _finite(found):
        raise _unfit("weights", file)


def _checked_head(found: Arrays, state: LearnerState, file: Path) -> Arrays:
    """Return the state of a head, or raise `Damaged` if it does not fit the learner."""
    own = state.head.state()
    rows = len(found["class_ids"]) if "class_ids" in found else -1
    for name, array in own.items():
        shape = (rows, *array.shape[1:]) if name != "scale" else array.shape
        if name not in found or (found[name].shape, found[name].dtype) != (shape, array.dtype):
            raise _unfit("class vectors", file)
    if not _finite(found):
        raise _unfit("class vectors", file)
    return found


def _check_classes(head: Head, store: Store, file: Path) -> None:
    """Raise `Damaged` if a head knows a class, or samples of one, that were never taught."""
    taught = {record.id: record.taught for record in store.classes.all()}
    if any(head.at_last_sleep(class_id)[0] > taught.get(class_id, 0) for class_id in head.class_ids.tolist()):
        raise _unfit("class vectors", file)


def _unfit(what: str, file: Path) -> Damaged:
    return Damaged(f"the {what} in {file} do not fit this learner: sleep on the pack again")


def _finite(arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays.values())
