"""Sleep of a learner, in this process or in the background."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from siesta.contracts import OnProgress, Progress
from siesta.errors import BadInput
from siesta.extras import require_torch
from siesta.learner.state import LearnerState
from siesta.rng import Purpose, derived_seed
from siesta.sleep.job import SleepJob, start_sleep
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.reporter import Reporter, reporting

if TYPE_CHECKING:  # the wake side must not load torch
    from siesta.sleep.resume import TrainingCheckpoint

__all__ = ["LOCK_PATIENCE", "consolidate", "sleep", "sleep_async"]

LOCK_PATIENCE = 30.0
"""Seconds that a sleep waits for an edit in another process."""

_MAX_NICE = 19


def sleep(
    state: LearnerState,
    options: SleepOptions,
    on_progress: OnProgress | None,
    reporter: Reporter | None,
    checkpoint: TrainingCheckpoint | None,
) -> SleepReport:
    """Sleep in this process; see `Siesta.sleep`."""
    require_torch("sleep")
    with ExitStack() as stack:
        if reporter is None and state.store.path is not None:
            reporter = stack.enter_context(reporting(state.store.path))
        report = consolidate(state, options, on_progress, reporter, checkpoint)
        if reporter is not None:
            reporter.done(report)  # last, because its readers may change the learner at once
    return report


def consolidate(
    state: LearnerState,
    options: SleepOptions,
    on_progress: OnProgress | None,
    reporter: Reporter | None,
    checkpoint: TrainingCheckpoint | None = None,
) -> SleepReport:
    """Sleep in this process, and leave it to the caller to report that it is done."""
    from siesta.sleep.consolidate import Consolidation

    seed = derived_seed(state.store.settings["seed"], Purpose.SLEEP, state.store.generations.newest())
    plan = options.plan(state.pipeline.spec.defaults, seed)
    both = _combined(on_progress, reporter)
    with state.sleeping(LOCK_PATIENCE) as snapshot:
        newest = snapshot.newest
        classifier = state.classifier
        return Consolidation(state.store, state.pipeline, state.head, classifier, newest, plan, both, checkpoint).run()


def _combined(on_progress: OnProgress | None, reporter: Reporter | None) -> OnProgress | None:
    """Return one callback for both, which is True when either of them asks to wake up."""
    if reporter is None:
        return on_progress

    def both(progress: Progress) -> bool:
        wake = on_progress is not None and bool(on_progress(progress))
        return reporter.on_progress(progress) or wake

    return both


def sleep_async(state: LearnerState, options: SleepOptions, threads: int, nice: int) -> SleepJob:
    """Start a sleep in a background process; see `Siesta.sleep_async`."""
    if state.store.path is None:
        raise BadInput("a learner in memory cannot sleep in another process: use sleep")
    if not 0 <= nice <= _MAX_NICE:
        raise BadInput(f"nice must be in 0..{_MAX_NICE}, not {nice}")
    options.budget()  # raises if it is wrong, before a process is started
    return start_sleep(state.store.path, options, threads=threads, nice=nice)
