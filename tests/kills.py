"""Processes that die of kill -9 in the middle of a training."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch

from siesta.contracts import Progress
from siesta.sleep.loop import train_step
from tests.small import register_small

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["siesta.learner", "siesta.methods"])  # torch is imported once for all children
_LONGEST = 300.0  # seconds


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killer_at(fraction: float) -> Callable[[Progress], None]:
    """Return a callback that kills its process when a training has done this fraction of its budget."""

    def kill(progress: Progress) -> None:
        if progress.fraction >= fraction:
            kill_this_process()

    return kill


def count_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each training step."""
    steps: list[int] = []

    def counted(*arguments: Any) -> Any:
        steps.append(1)
        return train_step(*arguments)

    monkeypatch.setattr("siesta.sleep.loop.train_step", counted)
    return steps


def run_until_killed(target: Callable[..., None], *arguments: Any) -> None:
    """Call a function of a test module in another process, with a checkpoint each step; it must die of kill -9."""
    child = _FORKSERVER.Process(target=_call, args=(dict(os.environ), torch.get_num_threads(), target, arguments))
    child.start()
    child.join(_LONGEST)
    if child.is_alive():
        child.kill()
    assert child.exitcode == -signal.SIGKILL, f"it ended with {child.exitcode}"


def _call(environment: dict[str, str], threads: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)  # tests change it after the server of processes has started
    torch.set_num_threads(threads)
    with pytest.MonkeyPatch.context() as patch:
        register_small(patch)
        for module in ("siesta.sleep.resume", "siesta.pretrain.loop"):
            patch.setattr(f"{module}.CHECKPOINT_SECONDS", 0.0)
        target(*arguments)
