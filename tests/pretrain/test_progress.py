"""Progress by steps and by seconds, and signals that ask a run to stop."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from siesta.pretrain.progress import TrainingProgress, stop_on_signal


def test_a_run_by_steps_is_done_after_them() -> None:
    progress = TrainingProgress(steps=4, limit=None)
    fractions = []
    while not progress.done:
        fractions.append(progress.fraction)
        progress.advance(0.5)
    assert fractions == [0, 0.25, 0.5, 0.75]
    assert progress.step == 4 and progress.seconds == 2.0 and progress.seconds_left == 0


def test_a_run_by_time_is_done_after_its_seconds_of_work() -> None:
    progress = TrainingProgress(steps=None, limit=1.0)
    progress.advance(0.4)
    assert progress.fraction == pytest.approx(0.4) and progress.seconds_left == pytest.approx(0.6)
    before = progress.done
    progress.advance(0.7)
    assert (before, progress.done) == (False, True)
    assert progress.fraction == 1 and progress.seconds_left == 0


def test_the_time_left_is_estimated_from_the_speed_so_far() -> None:
    progress = TrainingProgress(steps=10, limit=None)
    assert progress.seconds_left == 0, "nothing is known before the first step"
    progress.advance(3.0)
    assert progress.seconds_left == pytest.approx(27.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_handlers_are_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as stop_requested:
        assert not stop_requested()
        os.kill(os.getpid(), number)
        assert stop_requested()
    assert signal.getsignal(number) is before


def test_handlers_are_restored_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="broken"), stop_on_signal():
        raise ValueError("broken")
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone() -> None:
    before, found = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with stop_on_signal() as stop_requested:
            found.append((stop_requested(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, before)]
