"""The commands together, and what a failure looks like: one sentence and an exit code."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from siesta import __version__
from siesta.cli import ask, care, change, experiment, learner, reproduce
from siesta.cli import base as base_command
from siesta.cli import demo as demo_command
from siesta.cli import pretrain as pretrain_command
from siesta.cli import report as report_command
from siesta.cli import serve as serve_commands
from siesta.cli import sleep as sleep_commands
from siesta.cli.output import errors
from siesta.errors import SiestaError

__all__ = ["app", "main"]


class Interrupted(SiestaError):
    """Ctrl-C, under a name that the argument parser leaves alone."""

    exit_code = 130


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted, nothing is half-done") from None


app = typer.Typer(
    name="siesta",
    cls=_Commands,
    help="A classifier that learns as it goes and consolidates while it sleeps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("new")(learner.new)
app.command("pretrain")(pretrain_command.pretrain)
app.command("base")(base_command.base)
app.command("learn")(learner.learn)
app.command("sleep")(sleep_commands.sleep)
app.command("sleep-status")(sleep_commands.sleep_status)
app.command("sleep-pause")(sleep_commands.sleep_pause)
app.command("sleep-resume")(sleep_commands.sleep_resume)
app.command("wake")(sleep_commands.wake)
app.command("generations")(sleep_commands.generations)
app.command("rollback")(sleep_commands.rollback)
app.command("rename")(change.rename)
app.command("merge")(change.merge)
app.command("forget")(change.forget)
app.command("correct")(change.correct)
app.command("refit")(change.refit)
app.command("check")(care.check)
app.command("repair")(care.repair)
app.command("predict")(ask.predict)
app.command("eval")(ask.evaluate)
app.command("info")(ask.info)
app.command("serve")(serve_commands.serve)
app.add_typer(serve_commands.token, name="token")
app.command("run")(experiment.run)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report_command.report)
app.command("archive")(report_command.archive)
app.command("demo")(demo_command.demo)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """A classifier that learns as it goes and consolidates while it sleeps."""
    if version:
        sys.stdout.write(f"siesta {__version__}\n")
        raise typer.Exit


def main() -> None:
    """Runs a command.

    Exit codes: 0 done, 2 usage, 3 bad input, 4 damaged, 5 busy, 6 in part, 7 disk, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):  # a file name need not be text in any encoding
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SiestaError as error:
        errors.print(f"error: {error}", style="red")
        sys.exit(error.exit_code)
