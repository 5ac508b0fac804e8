"""Commands around a sleep: sleep, sleep-status, sleep-pause, sleep-resume, wake, generations, rollback."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siesta.augment import explain_augmentations
from siesta.cli.learner import JsonOption, PathArgument
from siesta.cli.output import INTERRUPTED, console, errors, print_json, say, sleeping
from siesta.policies import DEFAULT_POLICY, explain_policies

if TYPE_CHECKING:
    from siesta.contracts import Progress, SleepReport
    from siesta.jobs import SleepStatus

__all__ = ["generations", "rollback", "sleep", "sleep_pause", "sleep_resume", "sleep_status", "wake"]

_GIVING_WAY = 10


def sleep(
    path: PathArgument,
    updates: Annotated[int | None, typer.Option(help="Budget in updates (samples rehearsed).")] = None,
    seconds: Annotated[float | None, typer.Option(help="Budget in seconds.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Budget in minutes.")] = None,
    until: Annotated[str | None, typer.Option(help="Budget as a time of day, like 06:30.")] = None,
    policy: Annotated[str, typer.Option(help=f"What to rehearse. {explain_policies()}.")] = DEFAULT_POLICY,
    augment: Annotated[
        str | None, typer.Option(help=f"Mix pairs of samples; none are if left out. {explain_augmentations()}.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Samples a step.")] = 64,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate; the network's own if left out.")] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much worse it may do on held-out samples; by more, and it is not used.")
    ] = 0.05,
    seed: Annotated[int | None, typer.Option(help="Same seed and updates, same weights.")] = None,
    when: Annotated[str | None, typer.Option(help="Begin when nothing was taught for a while, like idle:10m.")] = None,
    daily: Annotated[
        str | None, typer.Option(help="Sleep every day in a window, like 02:00-05:00, until woken; it is the budget.")
    ] = None,
    background: Annotated[bool, typer.Option(help="In a process of its own, that gives way to others.")] = False,
    threads: Annotated[int, typer.Option(help="That a sleep in the background computes with.", min=1)] = 1,
    nice: Annotated[int, typer.Option(help="Give way to other processes, 0 to 19.", min=0, max=19)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Consolidate within a budget; Ctrl-C, or siesta wake, ends it early with what it has. Teaching may go on.

    Example: siesta sleep birds.siesta --minutes 10
    """
    from siesta.budget import Budget
    from siesta.errors import BadInput
    from siesta.waiting import Idle, Window

    window, idle = None if daily is None else Window.of(daily), None if when is None else Idle.of(when)
    budget: dict[str, Any] = {"updates": updates, "seconds": seconds, "minutes": minutes, "until": until}
    if window is None:
        Budget.of(**budget)  # what is wrong is said before anybody waits
    elif idle is not None or any(value is not None for value in budget.values()):
        raise BadInput("--daily is when it sleeps and for how long: leave --when and other budgets out")
    wanted = {
        "policy": policy,
        "augment": augment,
        "batch_size": batch_size,
        "tolerance": tolerance,
        "seed": seed,
    }
    if background:
        options = {**budget, **wanted, "lr": lr, "when": when, "daily": daily, "nice": nice or _GIVING_WAY}
        _in_background(path, options, threads, as_json)
        return
    _give_way(nice)
    _here(path, budget, {**wanted, "rate": lr}, idle, window, as_json)


def _give_way(nice: int) -> None:
    """Where Linux shares out time by sessions, niceness counts inside one only: a session of our own gives way too."""
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))


def _in_background(path: Path, options: dict[str, Any], threads: int, as_json: bool) -> None:
    from siesta.jobs import begin_sleep

    status = begin_sleep(path, options, threads).status()
    if as_json:
        print_json(asdict(status))
    else:
        words = f"siesta sleep-status {path} shows it, siesta wake {path} ends it."
        console.print(f"Asleep in process {status.pid}: {words}")


def _here(path: Path, budget: dict[str, Any], wanted: dict[str, Any], idle: Any, window: Any, as_json: bool) -> None:
    from siesta.jobs import reported

    with reported(path) as reporter:
        if idle is not None and not reporter.wait(lambda: idle.left(path), f"waiting for {idle.seconds} s of rest"):
            reporter.say("done", "woken before it began")
            return
        while True:
            if window is not None:
                words = f"waiting for {window.first:%H:%M}"
                if not reporter.wait(lambda: window.left(datetime.now()), words):
                    reporter.say("done", "woken before it began")
                    return
                budget = {"until": window.end(datetime.now())}
            report = _slept(path, {**budget, **wanted})
            if as_json:
                print_json(report.as_dict())
            else:
                console.print(report.words())
            if window is None or report.interrupted:
                break
    if report.loss_after > 1.2 * report.loss_before:
        errors.print("The loss rose: sleep longer, or with a lower --lr.", style="yellow")
    if report.interrupted and reporter.wished() != "wake":
        raise typer.Exit(INTERRUPTED)


def _slept(path: Path, options: dict[str, Any]) -> SleepReport:
    from siesta.learner import Siesta

    with Siesta.open(path, to_sleep=True) as learner, sleeping() as bar:
        task = bar.add_task("asleep", total=1.0, words="falling asleep")

        def show(progress: Progress) -> None:
            words = (
                f"loss {progress.loss:.3f}  rate {progress.rate:.4f}  "
                f"{progress.updates:,} updates, {progress.updates_per_second:.0f}/s  {progress.seconds_left:.0f} s left"
            )
            bar.update(task, completed=progress.fraction, words=words)

        return learner.sleep(**options, on_progress=show)


def sleep_status(path: PathArgument, as_json: JsonOption = False) -> None:
    """How a sleep stands, in whatever process it is.

    Example: siesta sleep-status birds.siesta
    """
    status = _job(path).status()
    if as_json:
        print_json(asdict(status))
    else:
        console.print(_described(status))


def _job(path: Path) -> Any:
    from siesta.errors import BadInput
    from siesta.jobs import SleepJob

    if not (path / "store.sqlite").is_file():
        raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
    return SleepJob(path)


def _described(status: SleepStatus) -> str:
    words = f"{status.state}: {status.words}" if status.words != status.state else status.state
    if status.running and status.progress is not None:
        progress = status.progress
        words += (
            f", {100 * progress['fraction']:.0f} % done, {progress['updates']:,.0f} updates, loss "
            f"{progress['loss']:.3f}, {progress['seconds_left']:.0f} s left"
        )
    return words + (f" (process {status.pid}, since {status.started})" if status.running else "")


def sleep_pause(path: PathArgument, as_json: JsonOption = False) -> None:
    """Let a sleep rest.

    Example: siesta sleep-pause birds.siesta
    """
    _job(path).pause()
    say(f"It rests after this batch. siesta sleep-resume {path} lets it go on.", as_json, wished="pause")


def sleep_resume(path: PathArgument, as_json: JsonOption = False) -> None:
    """Let a sleep that rests go on.

    Example: siesta sleep-resume birds.siesta
    """
    _job(path).resume()
    say("It goes on.", as_json, wished="resume")


def wake(path: PathArgument, as_json: JsonOption = False) -> None:
    """End a sleep early, keep what it has consolidated, and wait until that is in use.

    Example: siesta wake birds.siesta
    """
    job = _job(path)
    job.wake()
    status = job.wait()
    if as_json:
        print_json(asdict(status))
    else:
        console.print(_described(status))


def generations(path: PathArgument, as_json: JsonOption = False) -> None:
    """List the weights that are kept: one generation a sleep, with its scores.

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
        report, words = generation.report or {}, "as it was made"
        if {"updates", "loss_before", "loss_after"} <= report.keys():
            words = f"{report['updates']:,} updates, loss {report['loss_before']:.3f} -> {report['loss_after']:.3f}"
            if report.get("accuracy_after") is not None:
                words += f", held out {100 * report['accuracy_before']:.1f} -> {100 * report['accuracy_after']:.1f} %"
        mark = "*" if generation.in_use else " "
        console.print(f"{mark} {generation.number:>4}  {generation.made}  {words}")


def rollback(
    path: PathArgument,
    number: Annotated[int, typer.Argument(help="A generation that siesta generations lists.")],
    as_json: JsonOption = False,
) -> None:
    """Answer with the weights of another generation; what was taught since it was made is counted in.

    Example: siesta rollback birds.siesta 3
    """
    from siesta.learner import Siesta

    with Siesta.open(path, to_sleep=True) as learner:
        learner.roll_back(number)
    say(f"Generation {number} is in use.", as_json, generation=number)
