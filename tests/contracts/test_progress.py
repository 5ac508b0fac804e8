"""Progress of a sleep."""

from __future__ import annotations

from siesta.contracts import Progress


def test_progress_keeps_the_published_key_of_the_learning_rate() -> None:
    progress = Progress(updates=8, fraction=0.5, loss=1.0, lr=0.01, updates_per_second=4.0, seconds_left=2.0)
    assert progress.as_dict() == {
        "updates": 8,
        "fraction": 0.5,
        "loss": 1.0,
        "rate": 0.01,
        "updates_per_second": 4.0,
        "seconds_left": 2.0,
        "round": 0,
    }
