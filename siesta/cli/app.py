"""The `siesta` application: all commands, and how errors end (one sentence on stderr and an exit code)."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from siesta.cli import base as base_command
from siesta.cli import card, edits, experiment, export, integrity, learner, predict, reproduce
from siesta.cli import demo as demo_command
from siesta.cli import pack as pack_commands
from siesta.cli import pretrain as pretrain_command
from siesta.cli import report as report_command
from siesta.cli import serve as serve_commands
from siesta.cli import sleep as sleep_commands
from siesta.cli.output import err_console
from siesta.errors import SiestaError

__all__ = ["app", "main"]


class Interrupted(SiestaError):
    """Ctrl-C, as an exception that click does not catch; it turns KeyboardInterrupt into its own Abort."""

    exit_code = 130


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; no change was left incomplete") from None


app = typer.Typer(
    name="siesta",
    cls=_Commands,
    help="Image classifier for continual learning with sleep (SIESTA).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("new")(learner.new)
app.command("pretrain", cls=pretrain_command.PretrainCommand)(pretrain_command.pretrain)
app.command("base")(base_command.base)
app.command("learn")(learner.learn)
app.command("sleep")(sleep_commands.sleep)
app.command("sleep-status")(sleep_commands.sleep_status)
app.command("sleep-pause")(sleep_commands.sleep_pause)
app.command("sleep-resume")(sleep_commands.sleep_resume)
app.command("wake")(sleep_commands.wake)
app.command("pack")(pack_commands.pack)
app.command("take")(pack_commands.take)
app.command("generations")(sleep_commands.generations)
app.command("rollback")(sleep_commands.rollback)
app.command("rename")(edits.rename)
app.command("merge")(edits.merge)
app.command("forget")(edits.forget)
app.command("correct")(edits.correct)
app.command("reject")(edits.reject)
app.command("refit")(edits.refit)
app.command("check")(integrity.check)
app.command("repair")(integrity.repair)
app.command("export")(export.export)
app.command("card")(card.card)
app.command("predict")(predict.predict)
app.command("eval")(predict.evaluate)
app.command("info")(predict.info)
app.command("serve")(serve_commands.serve)
app.command("sleeper")(serve_commands.sleeper)
app.add_typer(serve_commands.token, name="token")
app.command("run")(experiment.run)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report_command.report)
app.command("archive")(report_command.archive)
app.command("demo")(demo_command.demo)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Image classifier for continual learning with sleep (SIESTA)."""
    if version:
        from siesta import __version__

        sys.stdout.write(f"siesta {__version__}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 2 usage, 3 bad input, 4 damaged or newer format, 5 busy, 6 partly done, 7 disk full or not
    writable, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):  # file names may hold bytes that are not valid text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SiestaError as error:
        message = str(error).replace("\n", r"\n")  # a path may have line breaks
        err_console.print(f"error: {message}", style="red")
        sys.exit(error.exit_code)
