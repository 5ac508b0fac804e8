"""A sleep on a packed learner; its result takes the place of what the file held."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import OnProgress
from siesta.errors import BadInput, Damaged
from siesta.extras import require_torch
from siesta.learner.pack import open_pack, unpacked
from siesta.learner.sleep import consolidate
from siesta.learner.state import LearnerState
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.reporter import Reporter, reporting
from siesta.store import Store
from siesta.store.pack_file import PackFile, write_pack_file
from siesta.store.tensor_files import decoded, encoded

__all__ = ["SleptPack", "read_slept", "sleep_on_pack"]

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class SleptPack:
    """What a sleep has made of a packed learner.

    Attributes:
        pack: Id of the pack.
        report: The report of the sleep.
        top: Weights of the new top.
        head: State of the new head.
        sums: `rehearsed`, ids of samples, and `times`, how often each was; `counted`, ids of the samples in the new
            statistics, whose arrays have the prefix "statistics.". Empty if the sleep is not to be used.
    """

    pack: str
    report: SleepReport
    top: Arrays
    head: Arrays
    sums: Arrays


def sleep_on_pack(
    file: str | Path,
    options: SleepOptions,
    *,
    device: str = "cpu",
    on_progress: OnProgress | None = None,
    reporter: Reporter | None = None,
) -> SleepReport:
    """Train top and head on the samples of a packed learner, and write the result into the file in their place.

    Until the result is complete, the file stays as it was.

    Args:
        file: What `pack_learner` wrote.
        options: How to sleep.
        device: The torch device.
        on_progress: Called after each batch; True ends the sleep early and keeps what was trained.
        reporter: Writes the status that other processes read; created here when None.
    """
    require_torch("sleep")
    file = Path(file)
    with ExitStack() as stack:
        pack = open_pack(file)
        if reporter is None:
            reporter = stack.enter_context(reporting(file))
        with unpacked(pack) as folder, contextlib.closing(Store.open(folder, "sleep")) as store:
            before = _rehearsed(store)
            report = consolidate(LearnerState(store, device, None), options, on_progress, reporter)
            _write(file, pack, store, report, before)
        reporter.done(report)
    return report


def _write(file: Path, pack: PackFile, store: Store, report: SleepReport, before: dict[int, int]) -> None:
    """Replace a pack by the result of its sleep."""
    if open_pack(file).facts != pack.facts:
        raise BadInput(f"{file} was replaced by another pack during its sleep: sleep again")
    weights = store.generations.read(store.generations.get(report.generation))
    parts = {name: encoded(weights[name]) for name in ("top", "head")}
    parts["sums"] = encoded(_sums(store, before) if report.used else {})
    facts = {**pack.facts, "report": report.as_dict()}
    write_pack_file(file, "slept", facts, parts)


def _rehearsed(store: Store) -> dict[int, int]:
    """Return how often each sample that may be rehearsed was."""
    memory = store.samples.memory()
    return dict(zip(memory.ids.tolist(), memory.rehearsed.tolist(), strict=True))


def _sums(store: Store, before: Mapping[int, int]) -> dict[str, npt.NDArray[Any]]:
    after = {sample: times - before[sample] for sample, times in _rehearsed(store).items() if times > before[sample]}
    sums: dict[str, npt.NDArray[Any]] = {
        "rehearsed": np.array(list(after), np.int64),
        "times": np.array(list(after.values()), np.int64),
    }
    statistics = store.statistics.read().arrays
    if statistics is not None:
        sums |= {f"statistics.{name}": array for name, array in statistics.items()}
        sums["counted"] = store.samples.counted()
    return sums


def read_slept(file: Path) -> SleptPack:
    """Read the result of a sleep.

    Raises:
        BadInput: The pack has not slept yet.
        Damaged: The file is damaged.
    """
    pack = PackFile.open(file)
    if pack.kind != "slept":
        raise BadInput(f"{file} has not slept yet: run `siesta sleep {file}` where torch is installed")
    message = f"{file} is damaged: sleep on the pack again"
    top, head, sums = (decoded(pack.read(name), message) for name in ("top", "head", "sums"))
    try:
        report = SleepReport.from_dict(pack.facts["report"])
        return SleptPack(str(pack.facts["id"]), report, top, head, sums)
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(message) from error
