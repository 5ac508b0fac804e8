"""The events of a learner: what was learned and predicted, drift, and the end of a sleep in any process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siesta import Siesta
from siesta.contracts import Prediction
from siesta.errors import BadInput
from siesta.files import replace_file
from siesta.service.events import EventHub, EventOptions, MqttAddress, make_sinks
from siesta.service.events import hub as hub_module
from siesta.sleep.job import STATUS_FILE, SleepJob, job_folder
from siesta.sleep.status import SleepStatus
from tests.learner.colours import labelled_pictures, picture
from tests.service.events.receivers import RecordingSink, wait_until


@pytest.fixture(scope="module")
def learner() -> Siesta:
    learner = Siesta.create(":memory:", memory="1MB", image_size=32)
    learner.learn_many(*labelled_pictures(3))
    return learner


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def hub(sink: RecordingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventHub]:
    monkeypatch.setattr(hub_module, "_POLL_SECONDS", 0.01)
    hub = EventHub("birds.siesta", SleepJob(tmp_path), [sink], predictions=True)
    hub.start()
    yield hub
    hub.close()


def test_what_was_learned_and_predicted_is_told(hub: EventHub, sink: RecordingSink, learner: Siesta) -> None:
    hub.learned(learner, [1, 2, 3], ["red", "blue", "red"])
    answers = learner.predict_many([picture("red", 9), picture("blue", 9)])
    hub.predicted(learner, answers)
    wait_until(lambda: len(sink.events) == 3, "three events")
    first, *others = sink.events
    assert first.data == {"ids": [1, 2, 3], "labels": {"red": 2, "blue": 1}, "classes": 3, "generation": 0}
    assert [(each.name, each.data["label"], each.data["score"]) for each in others] == [
        ("predicted", answer.label, answer.score) for answer in answers
    ]


def test_drift_is_told_once(
    hub: EventHub, sink: RecordingSink, learner: Siesta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "_held_out_familiarity", lambda _: (0.9,) * 40)
    hub._predictions = False
    for _ in range(3):
        hub.predicted(learner, [Prediction("red", 0.4, [("red", 0.4)], familiarity=0.2)] * 60)
    wait_until(lambda: sink.events, "an event")
    assert [each.name for each in sink.events] == ["drift"]
    assert sink.events[0].data["drifting"] is True


def test_the_end_of_a_sleep_is_told_whoever_started_it(hub: EventHub, sink: RecordingSink, tmp_path: Path) -> None:
    report = {"generation": 3, "updates": 12, "accuracy_after": 0.75, "held_out": 8}
    folder = job_folder(tmp_path)
    folder.mkdir()

    def write(**values: Any) -> None:
        replace_file(folder / STATUS_FILE, json.dumps(SleepStatus(**values).as_dict()).encode())

    write(state="done", message="done", started="2026-01-01T06:00:00+00:00", report=report)
    wait_until(lambda: sink.events, "an event")
    (event,) = sink.events
    assert (event.name, event.data["state"], event.data["accuracy_after"]) == ("slept", "done", 0.75)
    write(state="failed", message="the disk is full", started="2026-01-02T06:00:00+00:00")
    wait_until(lambda: len(sink.events) == 2, "another event")
    assert sink.events[1].data == {
        "state": "failed",
        "words": "the disk is full",
        "started": "2026-01-02T06:00:00+00:00",
    }


def test_receivers_are_made_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    address = MqttAddress("127.0.0.1", 1)
    options = EventOptions(address, ("http://127.0.0.1:1/a", "https://b"), "a long enough secret")
    assert [sink.name for sink in make_sinks(options, "birds")] == [
        "mqtt://127.0.0.1:1",
        "http://127.0.0.1:1",
        "https://b",
    ]
    assert make_sinks(EventOptions(), "birds") == []
    monkeypatch.setattr("siesta.extras.find_spec", lambda _: None)
    with pytest.raises(BadInput, match=r"pip install 'siesta-learn\[mqtt\]'"):
        make_sinks(options, "birds")
