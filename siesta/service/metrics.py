"""What a service did and how its learner stands, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Metrics", "Timed"]

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS")
_STATES = ("never", "waiting", "asleep", "paused", "done", "failed", "killed")


class Metrics:
    """Counted as it happens, or set when somebody looks."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        kept: dict[str, Any] = {"registry": self._registry}
        self._learns = Counter("siesta_learns", "Samples learned.", **kept)
        self._predictions = Counter("siesta_predictions", "Pictures answered.", **kept)
        self._together = Histogram(
            "siesta_together", "Pictures that went through the network together.", ["work"], buckets=_SIZES, **kept
        )
        self._passes = Histogram(
            "siesta_pass_seconds", "Time for those in the learner.", ["work"], buckets=_SECONDS, **kept
        )
        self._requests = Counter("siesta_requests", "Requests answered.", ["method", "route", "status"], **kept)
        self._latency = Histogram(
            "siesta_request_seconds", "Time for a request.", ["method", "route"], buckets=_SECONDS, **kept
        )
        self._gauges = {name: Gauge(f"siesta_{name}", words, **kept) for name, words in _GAUGES.items()}
        self._bytes = Gauge("siesta_bytes", "Bytes of the learner.", ["part"], **kept)
        self._sleep = Gauge("siesta_sleep_state", "1 for the state that its sleep is in.", ["state"], **kept)

    def taught(self, pictures: int, seconds: float) -> None:
        """Counts samples that were learned as one."""
        self._learns.inc(pictures)
        self._together.labels("learn").observe(pictures)
        self._passes.labels("learn").observe(seconds)

    def answered(self, pictures: int, seconds: float) -> None:
        """Counts pictures that were answered as one."""
        self._predictions.inc(pictures)
        self._together.labels("predict").observe(pictures)
        self._passes.labels("predict").observe(seconds)

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(method, route).observe(seconds)

    def page(self, info: Mapping[str, Any], generation: int, state: str, progress: Mapping[str, Any] | None) -> bytes:
        """All of it in Prometheus' text format.

        Args:
            info: What `Siesta.info` says.
            generation: Of the weights in use.
            state: Of its sleep.
            progress: Of its sleep, while there is one.
        """
        codec, samples = info["codec"], info["samples"]
        values = {
            "classes": len(info["classes"]),
            "samples": samples["stored"],
            "samples_capacity": samples["capacity"],
            "generation": generation,
            "codec_error": codec["relative_error"],
            "codec_error_lately": codec["error_lately"],
            "drifted": codec["drifted"],
            "sleep_fraction": (progress or {}).get("fraction"),
            "sleep_loss": (progress or {}).get("loss"),
        }
        for name, value in values.items():
            self._gauges[name].set(float("nan") if value is None else float(value))
        for part, size in info["bytes"].items():
            self._bytes.labels(part).set(size)
        for known in _STATES:
            self._sleep.labels(known).set(known == state)
        return generate_latest(self._registry)


_GAUGES = {
    "classes": "Classes known.",
    "samples": "Samples stored.",
    "samples_capacity": "Samples that there is room for.",
    "generation": "Number of the weights in use.",
    "codec_error": "Relative error of the codec on what it was fitted on.",
    "codec_error_lately": "The same on what was taught lately.",
    "drifted": "1 when the codec suits what is taught lately much worse.",
    "sleep_fraction": "Share of the sleep's budget that is spent.",
    "sleep_loss": "Loss of the sleep's last batch.",
}


class Timed:
    """Counts every request but streams, by its route and not by its path, of which there may be any number."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes it on, and looks at the clock."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            if route != "/v1/events":
                self._metrics.requested(method, route, status, time.monotonic() - start)
