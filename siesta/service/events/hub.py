"""The events of a service: what the learner's thread and the job of its sleep report, given to every receiver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Event as Flag
from threading import Thread
from typing import Any

from siesta.contracts import Prediction
from siesta.extras import require
from siesta.learner import Siesta
from siesta.service.events.drift import DriftWatch
from siesta.service.events.event import Event, EventName
from siesta.service.events.options import EventOptions
from siesta.service.events.sink import Sink
from siesta.service.schemas import SleepReportResponse
from siesta.sleep.calibration import Confidence
from siesta.sleep.job import SleepJob
from siesta.sleep.status import SleepStatus

__all__ = ["EventHub", "make_sinks"]

_POLL_SECONDS = 0.5  # between two looks at the sleep, which may run in any process


class EventHub:
    """Makes events and queues them for each receiver; nothing here waits for one."""

    def __init__(self, learner: str, job: SleepJob, sinks: Sequence[Sink], predictions: bool = False) -> None:
        """Create the hub; `start` begins to deliver.

        Args:
            learner: Name of the learner's folder.
            job: The sleep of the learner.
            sinks: The receivers.
            predictions: Whether each prediction is an event.
        """
        self._learner = learner
        self._job = job
        self._sinks = sinks
        self._predictions = predictions
        self._drift = DriftWatch()
        self._generation: int | None = None
        self._slept = SleepStatus("never", "")
        self._closing = Flag()
        self._watcher = Thread(target=self._watch_sleep, name="sleep events", daemon=True)

    def start(self) -> None:
        """Start to deliver, and to look whether a sleep has ended."""
        self._slept = self._job.status()
        if self._sinks:
            self._watcher.start()
        for sink in self._sinks:
            sink.start()

    def close(self) -> None:
        """Deliver what waits, for a moment, and end all threads."""
        self._closing.set()
        if self._sinks:
            self._watcher.join()
        for sink in self._sinks:
            sink.close()

    def publish(self, name: EventName, data: Mapping[str, Any]) -> None:
        """Queue an event for every receiver."""
        event = Event(name, self._learner, data)
        for sink in self._sinks:
            sink.put(event)

    # -- called by the learner's thread ---------------------------------------------------------------------------

    def learned(self, learner: Siesta, ids: Sequence[int], labels: Sequence[str]) -> None:
        """Report samples that are stored."""
        if self._sinks:
            counts = dict(Counter(labels))
            data = {"ids": list(ids), "labels": counts, "classes": len(learner.classes())}
            self.publish("learned", {**data, "generation": learner.generation})

    def predicted(self, learner: Siesta, predictions: Sequence[Prediction]) -> None:
        """Report predictions, if that is wished for, and drift where it begins or ends with them."""
        if not self._sinks:
            return
        if self._generation != learner.generation:
            self._generation = learner.generation
            self._drift.use_held_out(_held_out_familiarity(learner))
        if self._predictions:
            for each in predictions:
                top = [{"label": label, "score": score} for label, score in each.top]
                data = {"label": each.label, "score": each.score, "known": each.known, "familiarity": each.familiarity}
                self.publish("predicted", {**data, "top": top, "generation": learner.generation})
        drift = self._drift.add(each.familiarity for each in predictions)
        if drift is not None:
            self.publish("drift", {**drift, "generation": learner.generation})

    # -- the thread that looks at the sleep -----------------------------------------------------------------------

    def _watch_sleep(self) -> None:
        while not self._closing.wait(_POLL_SECONDS):
            status = self._job.status()
            if not status.running and (status.started, status.state) != (self._slept.started, self._slept.state):
                self.publish("slept", _sleep_data(status))
            self._slept = status


def _sleep_data(status: SleepStatus) -> dict[str, Any]:
    """Return what is said about a sleep that has ended: its state, a sentence, and the report of one that is done."""
    report = {} if status.report is None else SleepReportResponse.from_stored(status.report).model_dump()
    return {"state": status.state, "words": status.message, "started": status.started, **report}


def _held_out_familiarity(learner: Siesta) -> tuple[float, ...]:
    """Return the familiarity of the held-out samples under the weights in use."""
    for generation in learner.generations():
        if generation.number == learner.generation:
            confidence = Confidence.from_state((generation.report or {}).get("confidence"))
            return confidence.right + confidence.wrong
    return ()


def make_sinks(options: EventOptions, learner: str) -> list[Sink]:
    """Return the receivers that a service was started with."""
    sinks: list[Sink] = []
    if options.mqtt is not None:
        require("paho.mqtt", "--mqtt", "mqtt")
        from siesta.service.events.mqtt import Mqtt

        sinks.append(Mqtt(options.mqtt, learner, options.predictions))
    if options.webhooks:
        from siesta.service.events.webhook import Webhook

        sinks += [Webhook(url, options.webhook_secret) for url in options.webhooks]
    return sinks
