"""The API against a real process: teaching, asking, changing one's mind, and what is said when it cannot be."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from siesta import Siesta
from siesta.service.client import Client, Refused
from tests.service.running import Running, multipart, picture


def refused(status: int, words: str, work: Callable[[], object]) -> Refused:
    with pytest.raises(Refused, match=words) as caught:
        work()
    assert caught.value.status == status
    return caught.value


def test_what_is_taught_is_known_at_once(taught: Client) -> None:
    assert [(some.label, some.taught, some.stored) for some in taught.classes()] == [("red", 2, 2), ("blue", 2, 2)]
    answer = taught.predict(picture("blue", 9), top=2)
    assert (answer.label, answer.known, [one.label for one in answer.top]) == ("blue", True, ["blue", "red"])
    assert [one.label for one in taught.predict_many([picture("red", 8), picture("blue", 8)])] == ["red", "blue"]


def test_one_label_for_all_or_one_for_each(client: Client) -> None:
    assert len(client.learn([picture("red", 1), picture("blue", 1)], ["red", " blue "])) == 2
    assert [some.label for some in client.classes()] == ["red", "blue"]
    refused(422, "3 pictures, 2 labels", lambda: client.learn([picture("red")] * 3, ["red", "blue"]))
    refused(422, "no control characters", lambda: client.learn(picture("red"), "a\nb"))
    refused(422, "1 to 200 characters", lambda: client.learn(picture("red"), "   "))
    assert sum(some.taught for some in client.classes()) == 2


def test_one_bad_picture_refuses_all_and_is_named(taught: Client) -> None:
    words = r"image 2 \(picture\) is not a readable picture"
    refused(422, words, lambda: taught.learn([picture("red", 3), b"no picture"], "red"))
    refused(422, words, lambda: taught.predict_many([picture("red", 3), b"no picture"]))
    assert sum(some.taught for some in taught.classes()) == 4


def test_before_anything_was_taught_it_says_so(client: Client) -> None:
    refused(409, "not taught anything yet", lambda: client.predict(picture("red")))


def test_it_says_unknown_where_it_is_unsure(taught: Client) -> None:
    answer = taught.predict(picture("green"), threshold=1.0)
    assert (answer.label, answer.known, len(answer.top)) == ("unknown", False, 2)
    refused(409, "no samples are held out yet", lambda: taught.predict(picture("green"), error_rate=0.1))
    refused(422, "not both", lambda: taught.predict(picture("green"), threshold=0.5, error_rate=0.1))
    for wrong in (-1.0, 1.5, float("nan")):
        refused(422, "threshold", lambda wrong=wrong: taught.predict(picture("red"), threshold=wrong))  # type: ignore[misc]
    refused(422, "top", lambda: taught.predict(picture("red"), top=0))


def test_rename_merge_forget_correct(taught: Client) -> None:
    red, blue = taught.classes()
    assert taught.rename(red.id, "crimson").label == "crimson"
    assert taught.rename(red.id, "crimson").label == "crimson", "twice is no mistake"
    refused(409, "a class 'blue' already: merge", lambda: taught.rename(red.id, "blue"))
    new = taught.correct(red.thumbnails[0], "blue")
    red, blue = taught.classes()
    assert (red.stored, blue.stored, blue.thumbnails[0]) == (1, 3, new)
    taught.forget_sample(new)
    refused(404, f"no sample {new}", lambda: taught.forget_sample(new))
    refused(404, f"no sample {new}", lambda: taught.correct(new, "blue"))
    merged = taught.merge(red.id, blue.id)
    assert (merged.id, merged.stored, len(merged.thumbnails)) == (blue.id, 3, 3)
    refused(422, "is one class already", lambda: taught.merge(blue.id, blue.id))
    refused(404, f"no class {red.id}", lambda: taught.merge(red.id, blue.id))
    taught.forget(blue.id)
    assert taught.classes() == []
    refused(404, f"no class {blue.id}", lambda: taught.forget(blue.id))


def test_labels_are_text_never_markup_never_a_path(client: Client) -> None:
    for label in (
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "a/b?c#d%2e",
        "'; DROP TABLE classes; --",
        "深い 🌙",
    ):
        client.learn(picture("red"), label)
        found = client.classes()[-1]
        assert found.label == label
        assert client.rename(found.id, f"{label}.").label == f"{label}."
        client.forget(found.id)


def test_thumbnails_show_what_was_taught(taught: Client, running: Running) -> None:
    red = taught.classes()[0]
    with Image.open(io.BytesIO(taught.thumbnail(red.thumbnails[0]))) as small:
        assert (small.format, small.size) == ("WEBP", (96, 96))
        means = np.asarray(small.convert("RGB")).mean(axis=(0, 1))
    assert means[0] > 150 and means[1:].max() < 100
    url = f"{running.url}/v1/samples/{red.thumbnails[0]}/thumbnail"
    first = httpx.get(url)
    assert httpx.get(url, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    taught.forget(red.id)
    refused(404, "no picture of sample", lambda: taught.thumbnail(red.thumbnails[0]))
    assert httpx.get(url, headers={"If-None-Match": first.headers["etag"]}).status_code == 404


def test_info_has_what_it_costs_and_what_is_allowed(taught: Client) -> None:
    info = taught.info()
    assert (info.name, info.classes, info.generation, info.scopes) == ("colours.siesta", 2, 0, ["ask", "teach"])
    assert info.samples.stored == 4
    assert info.bytes.used == 4 * info.bytes.a_sample + info.bytes.thumbnails <= info.bytes.allowed
    assert info.bytes.thumbnails > 0
    assert info.default_policy in {policy.name for policy in info.policies}
    assert (info.held_out.samples, info.held_out.accuracy) == (0, None)


def test_requests_that_arrive_together_go_through_the_network_together(taught: Client, running: Running) -> None:
    before = metric(running, 'siesta_together_count{work="predict"}')
    start = threading.Barrier(24)

    def ask(number: int) -> str:
        with running.client() as own:
            own.info()  # connected by now
            start.wait()
            return own.predict(picture("red" if number % 2 else "blue", number)).label

    with ThreadPoolExecutor(24) as crowd:
        answers = list(crowd.map(ask, range(24)))
    assert answers == ["blue", "red"] * 12
    assert metric(running, 'siesta_together_count{work="predict"}') - before < 24


def metric(running: Running, name: str) -> float:
    lines = httpx.get(f"{running.url}/metrics").text.splitlines()
    return float(next((line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")), 0))


def test_metrics_say_what_was_done(taught: Client, running: Running) -> None:
    learned, asked = metric(running, "siesta_learns_total"), metric(running, "siesta_predictions_total")
    taught.learn(picture("red", 5), "red")
    taught.predict_many([picture("red", 6)] * 3)
    assert metric(running, "siesta_learns_total") == learned + 1
    assert metric(running, "siesta_predictions_total") == asked + 3
    assert metric(running, "siesta_samples") == 5
    assert metric(running, "siesta_generation") == 0
    assert metric(running, 'siesta_sleep_state{state="never"}') == 1
    assert metric(running, 'siesta_bytes{part="allowed"}') == 1_000_000
    assert metric(running, 'siesta_request_seconds_count{method="POST",route="/v1/learn"}') > 0


def test_events_tell_what_changes(taught: Client, running: Running) -> None:
    with running.client() as listener:
        events = listener.events()
        names = {type(next(events)).__name__ for _ in range(2)}
        assert names == {"SleepShape", "Changed"}
        for work in (
            lambda: taught.learn(picture("red", 7), "red"),
            lambda: taught.rename(taught.classes()[0].id, "scarlet"),
        ):
            work()
            assert type(next(events)).__name__ == "Changed"


def test_every_error_has_one_shape(running: Running) -> None:
    wrong = [
        ("GET", "/v1/nothing", {}, 404),
        ("PUT", "/v1/classes", {}, 405),
        ("GET", "/static/none.js", {}, 404),
        ("GET", "/static/../app.py", {}, 404),
        ("GET", "/v1/classes/0", {}, 405),
        ("DELETE", "/v1/classes/0", {}, 422),
        ("DELETE", f"/v1/samples/{2**63}", {}, 422),
        ("DELETE", "/v1/samples/one", {}, 422),
        ("POST", "/v1/learn", {}, 422),
        ("POST", "/v1/learn", {"data": {"label": "a"}}, 422),
        ("POST", "/v1/learn", {"data": {"image": "as text", "label": "a"}}, 422),
        ("POST", "/v1/learn/", {}, 404),
        ("POST", "/v1/learn", {"content": b"garbage", "headers": {"content-type": "multipart/form-data"}}, 400),
        ("POST", "/v1/sleep", {"content": b"{", "headers": {"content-type": "application/json"}}, 422),
        ("POST", "/v1/sleep", {"json": {}}, 422),
        ("POST", "/v1/sleep", {"json": {"seconds": 1, "updates": 1}}, 422),
        ("POST", "/v1/sleep", {"json": {"seconds": -1}}, 422),
        ("POST", "/v1/sleep", {"json": {"until": "25:00"}}, 422),
        ("POST", "/v1/sleep", {"json": {"seconds": 1, "policy": "none such"}}, 422),
        ("POST", "/v1/sleep", {"json": {"seconds": 1, "speed": "high"}}, 422),
        ("DELETE", "/v1/sleep", {}, 409),
        ("POST", "/v1/generations/77/use", {}, 404),
        ("PATCH", "/v1/classes/1", {"json": {"label": ["a"]}}, 422),
    ]
    for method, path, request, status in wrong:
        response = httpx.request(method, running.url + path, **request)  # type: ignore[arg-type]
        assert response.status_code == status, (method, path, response.text)
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert problem["status"] == status and problem["detail"] and problem["title"]
        assert str(running.path.parent) not in response.text


def test_each_is_one_sentence_of_ours(running: Running) -> None:
    as_json = {"content-type": "application/json"}
    boundary = {"content-type": "multipart/form-data; boundary=edge"}
    body, kind = multipart(("image", picture("red")), ("label", "red"))
    latin = body.replace(b"red\r\n", "f\u00fcnf\r\n".encode("latin-1"))
    number, whole = "should be a valid number", "should be a valid integer"
    wrong: list[tuple[str, dict[str, Any], int, str]] = [
        ("/v1/sleep", {"content": b"{", "headers": as_json}, 422, "the body is not JSON: expecting property name"),
        ("/v1/sleep", {"content": b'{"seconds": 1}'}, 422, "send it as JSON with content-type: application/json"),
        ("/v1/sleep", {}, 422, "send it as JSON with content-type: application/json"),
        ("/v1/sleep", {"json": [1]}, 422, "send a JSON object"),
        ("/v1/sleep", {"content": b"\xff", "headers": as_json}, 400, "the body cannot be read"),
        ("/v1/sleep", {"json": {"seconds": "60"}}, 422, f"seconds {number}"),
        ("/v1/sleep", {"json": {"seconds": True}}, 422, f"seconds {number}"),
        ("/v1/sleep", {"json": {"seconds": -1}}, 422, "seconds should be greater than 0"),
        ("/v1/sleep", {"json": {"updates": True}}, 422, f"updates {whole}"),
        ("/v1/sleep", {"json": {"until": "25:00"}}, 422, "until should be a time of day, like 06:30"),
        ("/v1/sleep", {"json": {"speed": 1}}, 422, "speed means nothing here"),
        ("/v1/classes/1/merge", {"json": {"into": True}}, 422, f"into {whole}"),
        ("/v1/classes/1/merge", {"json": {"into": "2"}}, 422, f"into {whole}"),
        ("/v1/classes/1/merge", {"json": {}}, 422, "into is missing"),
        ("/v1/classes/one/merge", {"json": {"into": 2}}, 422, f"class_id {whole}"),
        ("/v1/learn", {}, 422, "image is missing; label is missing"),
        ("/v1/learn", {"data": {"image": "as text", "label": "a"}}, 422, "image 1: send it as a file"),
        ("/v1/learn", {"content": latin, "headers": {"content-type": kind}}, 422, "label is not UTF-8"),
        ("/v1/learn", {"content": body[:-20], "headers": boundary}, 400, "the body ended before its end"),
        ("/v1/predict?top=x", {"files": {"image": picture("red")}}, 422, f"top {whole}"),
    ]
    for path, request, status, words in wrong:
        response = httpx.post(running.url + path, **request)
        assert response.status_code == status, (path, request, response.text)
        assert response.json()["detail"].startswith(words), (path, request)


def test_the_page_and_its_files_are_served_with_their_types(running: Running) -> None:
    page = httpx.get(running.url)
    assert page.headers["content-type"].startswith("text/html") and page.headers["cache-control"] == "no-cache"
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    for name, kind in (("main.js", "text/javascript"), ("tokens.css", "text/css"), ("icon.svg", "image/svg+xml")):
        file = httpx.get(f"{running.url}/static/{name}")
        assert file.headers["content-type"].startswith(kind) and file.headers["x-content-type-options"] == "nosniff"
        again = httpx.get(f"{running.url}/static/{name}", headers={"If-None-Match": file.headers["etag"]})
        assert again.status_code == 304


def test_it_says_that_it_lives_and_is_ready(running: Running) -> None:
    assert httpx.get(f"{running.url}/healthz").text == "alive\n"
    assert httpx.get(f"{running.url}/readyz").text == "ready\n"
    for path in ("/", "/healthz", "/readyz"):
        answer = httpx.head(running.url + path)
        assert (answer.status_code, answer.content) == (200, b""), path


def test_others_may_read_meanwhile_and_not_teach(taught: Client, running: Running) -> None:
    with Siesta.open(running.path, read_only=True) as reader:
        assert len(reader.store) == 4
