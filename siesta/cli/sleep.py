"""Commands sleep, sleep-status, sleep-pause, sleep-resume, wake, generations and rollback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siesta.cli.options import JsonOption, PathArgument, SleeperOption, SleeperTokenFileOption
from siesta.cli.output import INTERRUPTED, console, err_console, print_json, print_result, sleep_progress
from siesta.policies import DEFAULT_POLICY, explain_policies
from siesta.sleep.augment import explain_augmentations
from siesta.sleep.binomial import percent_with_interval
from siesta.sleep.round_limits import explain_rounds

if TYPE_CHECKING:
    from siesta.contracts import OnProgress, Progress
    from siesta.sleep.job import SleepJob
    from siesta.sleep.options import SleepOptions
    from siesta.sleep.report import SleepReport
    from siesta.sleep.reporter import Reporter
    from siesta.sleep.status import SleepStatus
    from siesta.sleep.trigger import Idle, Window

__all__ = ["generations", "rollback", "sleep", "sleep_pause", "sleep_resume", "sleep_status", "wake"]

_BACKGROUND_NICE = 10
_RISEN_LOSS = 1.2  # a warning is printed if the loss ends above this multiple of the loss at the beginning

_Updates = Annotated[int | None, typer.Option(help="Budget in updates (samples rehearsed).")]
_Seconds = Annotated[float | None, typer.Option(help="Budget in seconds.")]
_Minutes = Annotated[float | None, typer.Option(help="Budget in minutes.")]
_Until = Annotated[str | None, typer.Option(help=f"Budget as a time of day, such as 06:30. {explain_rounds()}.")]
_Policy = Annotated[str, typer.Option(help=f"What to rehearse. {explain_policies()}.")]
_Augment = Annotated[
    str | None, typer.Option(help=f"Mix pairs of samples; none by default. {explain_augmentations()}.")
]
_BatchSize = Annotated[int, typer.Option(help="Samples per training step.")]
_Lr = Annotated[float | None, typer.Option(help="Maximum learning rate; the network's own by default.")]
_Tolerance = Annotated[
    float, typer.Option(help="How far held-out accuracy may fall; if it falls further, the old weights stay in use.")
]
_Judge = Annotated[
    Path | None,
    typer.Option(
        help="Labelled images, as FOLDER/<label>/*, that judge this sleep instead of held-out samples.",
        metavar="FOLDER",
    ),
]
_Seed = Annotated[int | None, typer.Option(help="Random seed; with --updates it reproduces the weights.")]
_Options = Annotated[str | None, typer.Option("--options", help="All options of a sleep as JSON.", hidden=True)]
_When = Annotated[str | None, typer.Option(help="Begin after an idle time, such as idle:10m.")]
_Daily = Annotated[
    str | None,
    typer.Option(help="Sleep every day in a window, such as 02:00-05:00, until woken; the window is the budget."),
]
_Background = Annotated[bool, typer.Option(help="Sleep in a separate low-priority process.")]
_Threads = Annotated[int, typer.Option(help="Threads of a background sleep; ignored without --background.", min=1)]
_Nice = Annotated[int, typer.Option(help="Niceness, 0 to 19; a background sleep uses 10 unless set.", min=0, max=19)]


_LearnerOrPack = Annotated[Path, typer.Argument(help="The learner's folder, or a file that siesta pack wrote.")]


def sleep(
    path: _LearnerOrPack,
    updates: _Updates = None,
    seconds: _Seconds = None,
    minutes: _Minutes = None,
    until: _Until = None,
    policy: _Policy = DEFAULT_POLICY,
    augment: _Augment = None,
    batch_size: _BatchSize = 64,
    lr: _Lr = None,
    tolerance: _Tolerance = 0.05,
    judge: _Judge = None,
    seed: _Seed = None,
    options_json: _Options = None,
    when: _When = None,
    daily: _Daily = None,
    background: _Background = False,
    threads: _Threads = 1,
    nice: _Nice = 0,
    sleeper: SleeperOption = None,
    sleeper_token_file: SleeperTokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Consolidate until held-out samples stop gaining, or within a budget; teaching may go on meanwhile.

    Ctrl-C or `siesta wake` ends it early; what was trained until then is kept.

    Example: siesta sleep birds.siesta
    """
    from siesta.sleep.options import SleepOptions

    options = SleepOptions(
        updates, seconds, minutes, until, policy, augment, batch_size, lr, tolerance=tolerance, judge=judge, seed=seed
    )
    if options_json is not None:  # given by `start_sleep`
        options = SleepOptions.from_json(options_json)
    trigger = _trigger(path, options, when, daily, sleeper)
    elsewhere = _Elsewhere(sleeper, sleeper_token_file)
    if background:
        _start_in_background(path, options, threads, nice, when, daily, elsewhere, as_json)
    else:
        _give_way(nice)
        _sleep_here(path, options, trigger, elsewhere, as_json)


@dataclass(frozen=True)
class _Elsewhere:
    """Address of a service that trains in place of this machine, None if none does, and a file with its token."""

    address: str | None
    token: Path | None


def _trigger(
    path: Path, options: SleepOptions, when: str | None, daily: str | None, sleeper: str | None
) -> Idle | Window | None:
    """Return what the sleep waits for; raise BadInput where budget and trigger do not fit."""
    from siesta.errors import BadInput
    from siesta.sleep.trigger import Idle, Window

    if path.is_file() and (when, daily, sleeper) != (None, None, None):
        raise BadInput(f"{path} is a pack, which sleeps here and once: leave --when, --daily and --sleeper out")
    if daily is None:
        options.budget()  # raises for a wrong one before the wait, not after it
        return None if when is None else Idle.parse(when)
    if when is not None or options.has_budget:
        raise BadInput("--daily says when and for how long to sleep: leave --when and the budgets out")
    return Window.parse(daily)


def _start_in_background(
    path: Path,
    options: SleepOptions,
    threads: int,
    nice: int,
    when: str | None,
    daily: str | None,
    elsewhere: _Elsewhere,
    as_json: bool,
) -> None:
    from siesta.sleep.job import start_sleep

    job = start_sleep(
        path,
        options,
        threads=threads,
        nice=nice or _BACKGROUND_NICE,
        when=when,
        daily=daily,
        sleeper=elsewhere.address,
        sleeper_token=elsewhere.token,
    )
    status = job.status()
    if as_json:
        print_json(status.as_dict())
    else:
        hint = f"siesta sleep-status {path} shows it, siesta wake {path} ends it."
        console.print(f"Asleep in process {status.pid}: {hint}")


def _give_way(nice: int) -> None:
    """Lower this process's priority, and that of its session where Linux shares out time by sessions."""
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))


def _sleep_here(
    path: Path, options: SleepOptions, trigger: Idle | Window | None, elsewhere: _Elsewhere, as_json: bool
) -> None:
    """Wait for the trigger and sleep in this process; in a daily window again and again until woken."""
    from siesta.extras import require_torch
    from siesta.sleep.reporter import reporting
    from siesta.sleep.trigger import Window

    if elsewhere.address is None:
        require_torch("sleep")
    with reporting(path) as reporter:
        while True:
            if trigger is not None and not reporter.wait(lambda: trigger.left(path), trigger.message):
                return
            if isinstance(trigger, Window):
                options = replace(options, until=trigger.end(datetime.now()))
            report = _sleep_with_bar(path, options, elsewhere, reporter)
            if as_json:
                print_json(report.as_dict())
            else:
                console.print(report.summary())
            if not isinstance(trigger, Window) or report.interrupted:
                break
    if report.loss_after > _RISEN_LOSS * report.loss_before:
        rise = f"The loss rose from {report.loss_before:.3f} to {report.loss_after:.3f}"
        err_console.print(f"{rise}: sleep longer, or with a lower --lr.", style="yellow")
    if report.interrupted and not reporter.woken:
        raise typer.Exit(INTERRUPTED)


def _sleep_with_bar(path: Path, options: SleepOptions, elsewhere: _Elsewhere, reporter: Reporter) -> SleepReport:
    with sleep_progress() as bar:
        if not options.has_budget:
            err_console.print(f"{explain_rounds()}.")
        task = bar.add_task("asleep", total=1.0, text="falling asleep")

        def show(progress: Progress) -> None:
            text = (
                f"loss {progress.loss:.3f}  lr {progress.lr:.4f}  "
                f"{progress.updates:,} updates, {progress.updates_per_second:.0f}/s  "
                f"{_left(progress.seconds_left, progress.round)}"
            )
            bar.update(task, completed=progress.fraction, text=text)

        if elsewhere.address is not None:
            return _sleep_elsewhere(path, options, elsewhere.address, elsewhere.token, show, reporter)
        return _sleep(path, options, show, reporter)


def _sleep_elsewhere(
    path: Path, options: SleepOptions, address: str, token: Path | None, show: OnProgress, reporter: Reporter
) -> SleepReport:
    from siesta.errors import BadInput

    try:
        from siesta.service.remote_sleep import sleep_remotely
        from siesta.service.sleeper_client import SleeperClient, sleeper_token
    except ModuleNotFoundError as error:
        raise BadInput(f"--sleeper needs {error.name}: pip install 'siesta-learn[serve]'") from error
    with SleeperClient(address, sleeper_token(token)) as sleeper:
        return sleep_remotely(path, options, sleeper, reporter, show)


def _sleep(path: Path, options: SleepOptions, show: OnProgress, reporter: Reporter) -> SleepReport:
    """Sleep on a learner or on a pack."""
    from siesta.learner import Siesta
    from siesta.learner.packed_sleep import sleep_on_pack

    if path.is_file():
        return sleep_on_pack(path, options, on_progress=show, reporter=reporter)
    with Siesta.open(path, to_sleep=True) as learner:
        return learner.sleep(options, on_progress=show, reporter=reporter)


def _left(seconds: float, number: int) -> str:
    """Return the time left, and the number of the round in a sleep without a budget."""
    return f"round {number}, at most {seconds:.0f} s left" if number else f"{seconds:.0f} s left"


def sleep_status(path: _LearnerOrPack, as_json: JsonOption = False) -> None:
    """Print the status of the current or last sleep.

    Example: siesta sleep-status birds.siesta
    """
    _print_status(_job(path).status(), as_json)


def _print_status(status: SleepStatus, as_json: bool) -> None:
    if as_json:
        print_json(status.as_dict())
    else:
        console.print(_description(status))


def _job(path: Path) -> SleepJob:
    from siesta.errors import BadInput
    from siesta.sleep.job import SleepJob

    if not ((path / "store.sqlite").is_file() or path.is_file()):
        raise BadInput(f"there is no learner at {path}: create one with `siesta new {path}`")
    return SleepJob(path)


def _description(status: SleepStatus) -> str:
    text = f"{status.state}: {status.message}" if status.message != status.state else status.state
    if status.running and status.progress is not None:
        progress = status.progress
        text += (
            f", {100 * progress['fraction']:.0f} % done, {progress['updates']:,.0f} updates, loss "
            f"{progress['loss']:.3f}, {_left(progress['seconds_left'], int(progress.get('round', 0)))}"
        )
    return text + (f" (process {status.pid}, since {status.started})" if status.running else "")


def sleep_pause(path: _LearnerOrPack, as_json: JsonOption = False) -> None:
    """Pause a sleep.

    Example: siesta sleep-pause birds.siesta
    """
    _job(path).pause()
    message = f"The sleep pauses after this batch. siesta sleep-resume {path} continues it."
    print_result(message, as_json, wished="pause")


def sleep_resume(path: _LearnerOrPack, as_json: JsonOption = False) -> None:
    """Continue a paused sleep.

    Example: siesta sleep-resume birds.siesta
    """
    _job(path).resume()
    print_result("The sleep continues.", as_json, wished="resume")


def wake(path: _LearnerOrPack, as_json: JsonOption = False) -> None:
    """End a sleep early, keep what it has consolidated, and wait until that is in use.

    Example: siesta wake birds.siesta
    """
    job = _job(path)
    job.wake()
    _print_status(job.wait(), as_json)


def generations(path: PathArgument, as_json: JsonOption = False) -> None:
    """List the generations of weights that are kept, one for each sleep, with their losses and accuracies.

    Example: siesta generations birds.siesta
    """
    from siesta.store import Store

    store = Store.open(path, "read")
    kept = store.generations.all()
    store.close()
    if as_json:
        print_json([asdict(generation) for generation in kept])
        return
    for generation in kept:
        mark = "*" if generation.in_use else " "
        console.print(f"{mark} {generation.number:>4}  {generation.made}  {_sleep_summary(generation.report or {})}")


def _sleep_summary(report: Mapping[str, Any]) -> str:
    if not {"updates", "loss_before", "loss_after"} <= report.keys():
        return "initial weights"
    text = f"{report['updates']:,} updates, loss {report['loss_before']:.3f} -> {report['loss_after']:.3f}"
    if report.get("accuracy_before") is not None and report.get("held_out"):
        after = percent_with_interval(report["accuracy_after"], report["held_out"])
        text += f", {report['held_out']:,} held out: {100 * report['accuracy_before']:.1f} % -> {after}"
    return text


def rollback(
    path: PathArgument,
    number: Annotated[int, typer.Argument(help="A generation that siesta generations lists.")],
    as_json: JsonOption = False,
) -> None:
    """Use the weights of another generation, together with what was taught since it was made.

    Example: siesta rollback birds.siesta 3
    """
    from siesta.learner import Siesta

    with Siesta.open(path, to_sleep=True) as learner:
        learner.roll_back(number)
    print_result(f"Generation {number} is in use.", as_json, generation=number)
