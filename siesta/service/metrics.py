"""Metrics of the service and its learner in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from siesta.learner import LearnerInfo
from siesta.service.endpoints import is_endless

__all__ = ["Metrics", "MetricsMiddleware"]

_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)
_SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS")
_SLEEP_STATES = ("never", "waiting", "asleep", "paused", "done", "failed", "killed")
_GAUGES = {
    "classes": "Classes known.",
    "samples": "Samples stored.",
    "samples_capacity": "Samples that fit into the budget.",
    "generation": "Number of the weights in use.",
    "codec_error": "Relative error of the codec on the images it was fitted on.",
    "codec_error_lately": "Relative error of the codec on recent images.",
    "drifted": "1 if the codec's error on recent images is much larger than on those it was fitted on.",
    "sleep_fraction": "Share of the sleep's budget that is spent.",
    "sleep_loss": "Loss of the sleep's last batch.",
}


class Metrics:
    """Counters that are updated by the service, and gauges that are set when they are rendered.

    Example:
        >>> metrics = Metrics()
        >>> metrics.record_learn(images=2, seconds=0.1)
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        options: dict[str, Any] = {"registry": self._registry}
        timed: dict[str, Any] = {"registry": self._registry, "buckets": _SECONDS_BUCKETS}
        self._learned = Counter("siesta_learns", "Samples learned.", **options)
        self._predicted = Counter("siesta_predictions", "Images predicted.", **options)
        self._batch_sizes = Histogram(
            "siesta_together", "Images processed in one batch.", ["work"], buckets=_BATCH_BUCKETS, **options
        )
        self._batch_seconds = Histogram("siesta_pass_seconds", "Seconds for a batch in the learner.", ["work"], **timed)
        self._requests = Counter("siesta_requests", "Requests answered.", ["method", "route", "status"], **options)
        self._latency = Histogram("siesta_request_seconds", "Seconds for a request.", ["method", "route"], **timed)
        self._gauges = {name: Gauge(f"siesta_{name}", help_text, **options) for name, help_text in _GAUGES.items()}
        self._bytes = Gauge("siesta_bytes", "Bytes of the learner.", ["part"], **options)
        self._sleep_state = Gauge("siesta_sleep_state", "1 for the present state of the sleep.", ["state"], **options)

    def record_learn(self, images: int, seconds: float) -> None:
        """Count a batch of learned images."""
        self._learned.inc(images)
        self._record_batch("learn", images, seconds)

    def record_predict(self, images: int, seconds: float) -> None:
        """Count a batch of predicted images."""
        self._predicted.inc(images)
        self._record_batch("predict", images, seconds)

    def _record_batch(self, work: str, images: int, seconds: float) -> None:
        self._batch_sizes.labels(work).observe(images)
        self._batch_seconds.labels(work).observe(seconds)

    def record_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(method, route).observe(seconds)

    def render(self, info: LearnerInfo, generation: int, state: str, progress: Mapping[str, Any] | None) -> bytes:
        """Return all metrics in Prometheus' text format.

        Args:
            info: Result of `Siesta.info`.
            generation: Number of the weights in use.
            state: State of the sleep.
            progress: Progress of the sleep, None while none runs.
        """
        codec, samples = info.codec, info.samples
        values = {
            "classes": len(info.classes),
            "samples": samples.stored,
            "samples_capacity": samples.capacity,
            "generation": generation,
            "codec_error": codec.relative_error,
            "codec_error_lately": codec.error_lately,
            "drifted": codec.drifted,
            "sleep_fraction": (progress or {}).get("fraction"),
            "sleep_loss": (progress or {}).get("loss"),
        }
        for name, value in values.items():
            self._gauges[name].set(float("nan") if value is None else float(value))
        for part, size in vars(info.bytes).items():
            self._bytes.labels(part).set(size)
        for known_state in _SLEEP_STATES:
            self._sleep_state.labels(known_state).set(known_state == state)
        return generate_latest(self._registry)


class MetricsMiddleware:
    """Counts and times every request except event streams.

    Requests are counted by route, because the number of different paths has no bound.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its status and duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.monotonic()
        status = 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            route = scope.get("route")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            if not is_endless(route):
                path = getattr(route, "path", "other")
                self._metrics.record_request(method, path, status, time.monotonic() - start)
