"""Drift begins when one in five recent images is unfamiliar, and ends when one in ten is."""

from __future__ import annotations

from siesta.service.events.drift import DriftWatch

HELD_OUT = [0.5, *([0.9] * 39)]  # a twentieth is below 0.88


def test_drift_begins_and_ends_once() -> None:
    watch = DriftWatch()
    watch.use_held_out(HELD_OUT)
    assert watch.add([0.9] * 100) is None
    assert watch.add([0.2] * 19) is None
    assert watch.add([0.2]) == {"drifting": True, "unfamiliar_share": 0.2, "usual_share": 0.05, "predictions": 100}
    assert watch.add([0.2] * 50) is None
    assert watch.add([0.95] * 89) is None
    ended = watch.add([0.95])
    assert ended is not None
    assert (ended["drifting"], ended["unfamiliar_share"]) == (False, 0.1)


def test_too_few_held_out_samples_or_predictions_say_nothing() -> None:
    watch = DriftWatch()
    assert watch.add([0.0] * 200) is None
    watch.use_held_out(HELD_OUT[:19])
    assert watch.add([0.0] * 200) is None
    watch.use_held_out(HELD_OUT)
    assert watch.add([0.0] * 99) is None, "predictions of other weights do not count"
    assert watch.add([0.0]) is not None
