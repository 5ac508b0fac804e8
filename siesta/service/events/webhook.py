"""Webhooks: events as signed HTTP requests, after the specification Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import time

import httpx

from siesta.errors import BadInput
from siesta.service.events.event import Event
from siesta.service.events.sink import NotDelivered, Sink

__all__ = ["Webhook", "secret_bytes", "sign"]

_PREFIX = "whsec_"  # of a secret in base64
_LEAST_SECRET_BYTES = 16
_TIMEOUT = 10.0
_TEMPORARY = (408, 425, 429)  # besides 5xx
_log = logging.getLogger(__name__)


def secret_bytes(secret: str) -> bytes:
    """Return the key of a secret: base64 after "whsec_", or else the text itself.

    Example:
        >>> secret_bytes("whsec_MDEyMzQ1Njc4OWFiY2RlZg==")
        b'0123456789abcdef'
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True) if secret.startswith(_PREFIX) else b""
    except binascii.Error as error:
        raise BadInput(f"the secret of the webhooks is not base64 after {_PREFIX} ({error}): write it again") from error
    key = key or secret.encode()
    if len(key) < _LEAST_SECRET_BYTES:
        raise BadInput(f"the secret of the webhooks has {len(key)} bytes: give at least {_LEAST_SECRET_BYTES}")
    return key


def sign(key: bytes, event_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: HMAC-SHA256 of id, time and body."""
    digest = hmac.new(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


class Webhook(Sink):
    """Sends each event to an address; one that answers 5xx, 429 or not at all gets it again later.

    Any other refusal is final for that event, because it would be refused again. Redirects are not followed.
    """

    def __init__(self, url: str, secret: str, first_pause: float = 1.0) -> None:
        """Create the queue and the client.

        Args:
            url: Address of the receiver.
            secret: What requests are signed with; see `secret_bytes`.
            first_pause: Seconds before an event is sent again for the first time.
        """
        address = httpx.URL(url)
        super().__init__(f"{address.scheme}://{address.netloc.decode()}", first_pause=first_pause)
        self._url = address
        self._key = secret_bytes(secret)
        self._http = httpx.Client(timeout=_TIMEOUT, follow_redirects=False)

    def deliver(self, event: Event) -> None:
        """Send one event."""
        body, timestamp = event.encoded(), int(time.time())
        headers = {
            "content-type": "application/json",
            "webhook-id": event.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(self._key, event.id, timestamp, body),
        }
        try:
            status = self._http.post(self._url, content=body, headers=headers).status_code
        except httpx.HTTPError as error:
            raise NotDelivered(str(error) or type(error).__name__) from error
        if status >= 500 or status in _TEMPORARY:
            raise NotDelivered(f"it answered {status}")
        if status >= 300:
            _log.warning("%s refused an event with %d: it is dropped", self.name, status)

    def close(self) -> None:
        """Deliver what still waits, for two seconds at most, and close the connection."""
        super().close()
        self._http.close()
