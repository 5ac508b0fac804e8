"""Run commands as a user does: in this process where that is enough, and by the installed script where it is not."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from siesta.cli import main

SCRIPT = Path(sys.executable).with_name("siesta")
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "utf-8",
    "COLUMNS": "100",
}

Result = subprocess.CompletedProcess[str]
Argument = str | bytes | Path


def run(*arguments: Argument) -> Result:
    """Call `main` in this process; return its output and exit code. An exception that escapes it is raised here."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    argv = [os.fsdecode(argument) for argument in arguments]
    code = 0
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", ["siesta", *argv]):
        try:
            main()
        except SystemExit as end:
            assert isinstance(end.code, int | None)
            code = end.code or 0
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return Result(argv, code, *texts)


def run_script(*arguments: Argument, before: tuple[str, ...] = ()) -> Result:
    """Run the installed script in a process of its own, where warnings are errors."""
    command = [*before, str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=ENVIRONMENT, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 1, done.stderr
    return done


def result_of(*arguments: Argument, code: int = 0, by: Callable[..., Result] = run) -> Any:
    """Return what a command prints with --json, after checking its exit code."""
    done = by(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def assert_refused(code: int, pattern: str, *arguments: Argument, by: Callable[..., Result] = run) -> None:
    """Check that a command ends with `code` and one error message that matches, and prints no result."""
    done = by(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert re.search(pattern, done.stderr), done.stderr
    assert len([line for line in done.stderr.splitlines() if "error:" in line]) == 1, done.stderr


def interrupt(*arguments: Argument, when: Callable[[str], bool]) -> tuple[int, str, str]:
    """Run the script with a terminal as stderr, and press Ctrl-C as soon as `when` is true of what it shows.

    Returns:
        Exit code, stdout and stderr.
    """
    parent_end, child_end = os.openpty()
    # Ctrl-C may fall between opening a file and entering its `with`: Python closes it then, and warns
    environment = {**ENVIRONMENT, "TERM": "xterm", "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
    child = subprocess.Popen([SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=child_end, env=environment)
    os.close(child_end)
    shown = b""
    pressed = False
    while True:
        try:
            data = os.read(parent_end, 65536)
        except OSError:  # the child has closed its end
            break
        if not data:
            break
        shown += data
        if not pressed and when(shown.decode("utf-8", "replace")):
            child.send_signal(signal.SIGINT)
            pressed = True
    os.close(parent_end)
    out, _ = child.communicate(timeout=60)
    text = shown.decode("utf-8", "replace")
    assert pressed, text
    assert "Traceback" not in text
    return child.returncode, out.decode(), text
