"""Metrics of the service in Prometheus' text format."""

from __future__ import annotations

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from siesta import Siesta
from siesta.service.client import Client
from siesta.service.metrics import Metrics, MetricsMiddleware
from tests.service.event_loop import run_async
from tests.service.server_process import ServerProcess, make_image


def parse_metric(page: str, name: str) -> float:
    return float(next((line.rpartition(" ")[2] for line in page.splitlines() if line.startswith(f"{name} ")), 0))


def read_metric(server: ServerProcess, name: str) -> float:
    return parse_metric(httpx.get(f"{server.url}/metrics").text, name)


def render(metrics: Metrics) -> str:
    info = Siesta.create(":memory:", memory="1MB", image_size=32).info()
    return metrics.render(info, 3, "asleep", {"fraction": 0.25, "loss": 1.5}).decode()


def test_batches_are_counted_by_kind_of_work_and_size() -> None:
    metrics = Metrics()
    metrics.record_learn(5, 0.02)
    metrics.record_predict(3, 0.01)
    metrics.record_predict(1, 0.01)
    page = render(metrics)
    assert parse_metric(page, "siesta_learns_total") == 5
    assert parse_metric(page, "siesta_predictions_total") == 4
    assert parse_metric(page, 'siesta_together_count{work="predict"}') == 2
    assert parse_metric(page, 'siesta_together_sum{work="predict"}') == 4
    assert parse_metric(page, 'siesta_pass_seconds_count{work="learn"}') == 1


def test_gauges_show_the_learner_and_its_sleep() -> None:
    page = render(Metrics())
    assert parse_metric(page, "siesta_generation") == 3
    assert parse_metric(page, "siesta_sleep_fraction") == 0.25
    assert parse_metric(page, 'siesta_sleep_state{state="asleep"}') == 1
    assert parse_metric(page, 'siesta_sleep_state{state="done"}') == 0
    assert parse_metric(page, 'siesta_bytes{part="allowed"}') == 1_000_000


@pytest.mark.parametrize(("method", "recorded"), [("GET", "GET"), ("BREW", "other")])
def test_a_request_without_a_route_is_counted_as_other(method: str, recorded: str) -> None:
    metrics = Metrics()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})

    async def send(_: Message) -> None:
        return

    async def receive() -> Message:
        return {"type": "http.request"}

    scope: Scope = {"type": "http", "method": method, "path": "/some/path"}
    run_async(MetricsMiddleware(app, metrics)(scope, receive, send))
    name = f'siesta_requests_total{{method="{recorded}",route="other",status="404"}}'
    assert parse_metric(render(metrics), name) == 1


def test_the_service_counts_what_it_does(taught: Client, server: ServerProcess) -> None:
    learned = read_metric(server, "siesta_learns_total")
    predicted = read_metric(server, "siesta_predictions_total")
    taught.learn(make_image("red", 5), "red")
    taught.predict_many([make_image("red", 6)] * 3)
    assert read_metric(server, "siesta_learns_total") == learned + 1
    assert read_metric(server, "siesta_predictions_total") == predicted + 3
    assert read_metric(server, "siesta_samples") == 5
    assert read_metric(server, 'siesta_sleep_state{state="never"}') == 1
    assert read_metric(server, 'siesta_request_seconds_count{method="POST",route="/v1/learn"}') > 0
