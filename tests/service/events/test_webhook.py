"""Webhooks are signed, sent again after a temporary failure, and given up after a refusal."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.service.events import Event
from siesta.service.events.webhook import Webhook, secret_bytes
from tests.service.events.receivers import http_receiver, wait_until

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()


def test_a_request_is_signed_as_standard_webhooks_asks() -> None:
    event = Event("learned", "birds.siesta", {"ids": [1]})
    with http_receiver() as receiver:
        webhook = Webhook(receiver.url, SECRET)
        webhook.start()
        webhook.put(event)
        wait_until(lambda: receiver.requests, "a request")
        webhook.close()
    ((headers, body),) = receiver.requests
    page = (Path(__file__).parents[3] / "docs" / "events.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    receiving: dict[str, Any] = {}
    exec(example, receiving)
    assert receiving["is_genuine"](SECRET, headers, body)
    assert not receiving["is_genuine"](SECRET, headers, body + b" ")
    assert json.loads(body) == event.values()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(b"0123456789abcdef01234567", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert headers["webhook-id"] == event.id
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60


def test_it_is_sent_again_after_5xx_and_429_but_not_after_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    with http_receiver(503, 429, 204, 302, 404) as receiver:
        webhook = Webhook(receiver.url, SECRET, first_pause=0.01)
        webhook.start()
        events = [Event("learned", "birds", {"ids": [number]}) for number in range(4)]
        for event in events:
            webhook.put(event)
        wait_until(lambda: len(receiver.requests) == 6, "six requests")
        webhook.close()
    ids = [headers["webhook-id"] for headers, _ in receiver.requests]
    assert ids == [events[0].id] * 3 + [event.id for event in events[1:]]
    assert "refused an event with 302" in caplog.text
    assert "refused an event with 404" in caplog.text


def test_an_address_where_nothing_listens_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook("http://anna:pass@127.0.0.1:9/hook?key=1", SECRET, first_pause=0.01)
    webhook.start()
    webhook.put(Event("learned", "birds", {}))
    wait_until(lambda: caplog.records, "a warning")
    webhook.close()
    assert "sent again" in caplog.text
    assert "pass" not in caplog.text
    assert "key" not in caplog.text


@pytest.mark.parametrize(("secret", "message"), [("short", "has 5 bytes"), ("whsec_%%%", "is not base64")])
def test_a_weak_or_malformed_secret_is_refused(secret: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        secret_bytes(secret)


def test_a_secret_may_be_any_text() -> None:
    assert secret_bytes("a text that is long enough") == b"a text that is long enough"
