"""What a kill would leave of a learner: copies of its folder, made between every two writes of an operation.

The operating system keeps what a killed process wrote, so a copy of the files at a moment is what a kill at that moment
leaves. SQLite's shared memory is left out, as a new process makes it again from the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from siesta import Siesta
from tests.stores import store_of

__all__ = ["copies_between_writes"]

_CALLS = ("fsync", "replace", "rename", "unlink")
_IGNORED = shutil.ignore_patterns("*-shm", "*lock")


@contextmanager
def copies_between_writes(learner: Siesta, path: Path, copies: Path) -> Iterator[list[Path]]:
    """Copy the folder before and after each commit, sync, renaming and removal of the block.

    Args:
        learner: The learner that the block changes.
        path: Its folder.
        copies: The folder for the copies.

    Yields:
        The copies, in order, each different from the one before; complete when the block has ended.
    """
    made: list[Path] = []
    seen: list[object] = []

    def copy() -> None:
        content = _content(path)
        if not seen or content != seen[-1]:
            seen.append(content)
            target = copies / f"{len(made):02d}.siesta"
            made.append(Path(shutil.copytree(path, target, copy_function=_copy_or_link, ignore=_IGNORED)))

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **options: Any) -> Any:
            copy()
            result = call(*arguments, **options)
            copy()
            return result

        return write

    connection = store_of(learner).session.connection
    connection.set_trace_callback(lambda statement: copy() if statement.startswith(("BEGIN", "COMMIT")) else None)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in _CALLS:
                patch.setattr(os, name, watched(getattr(os, name)))
            yield made
            copy()
    finally:
        connection.set_trace_callback(None)


def _copy_or_link(source: str, target: str) -> None:
    """Copy a database or its log; other files are replaced, but never written to again, so a link is a copy."""
    (shutil.copy2 if Path(source).name.startswith("store.sqlite") else os.link)(source, target)


def _content(path: Path) -> dict[str, object]:
    """Return something that changes with the contents of a folder."""
    found: dict[str, object] = {}
    for file in path.rglob("*"):
        if file.name.startswith("store.sqlite"):
            found[file.name] = b"" if file.name.endswith("-shm") else file.read_bytes()
        else:
            facts = file.stat()
            found[str(file.relative_to(path))] = (facts.st_ino, facts.st_size)
    return found
