"""Where events of a service are sent, as its command line says it; secrets come from the environment or a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from siesta.errors import BadInput

__all__ = ["DISCOVERY", "EventOptions", "MqttAddress"]

DISCOVERY = "homeassistant"
"""Home Assistant's own prefix of topics for discovery."""

_MQTT_PASSWORD = "SIESTA_MQTT_PASSWORD"  # noqa: S105 - names of variables
_WEBHOOK_SECRET = "SIESTA_WEBHOOK_SECRET"  # noqa: S105
_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True)
class MqttAddress:
    """A broker.

    Attributes:
        host: Its name or address.
        port: Its port.
        tls: Whether the connection is encrypted.
        user: Name of the user, empty for none.
        password: Password of the user, None for none.
        topic: Topic below which events are published; one with the learner's name when empty.
        discovery: Home Assistant's prefix of topics for discovery; empty for none.
    """

    host: str
    port: int
    tls: bool = False
    user: str = ""
    password: str | None = None
    topic: str = ""
    discovery: str = DISCOVERY

    @classmethod
    def parse(cls, url: str, password: str | None = None, discovery: str = DISCOVERY) -> MqttAddress:
        """Return the broker of an address.

        Example:
            >>> MqttAddress.parse("mqtts://anna@broker.example/garden/birds")
            MqttAddress(host='broker.example', port=8883, tls=True, user='anna', password=None, topic='garden/birds', \
discovery='homeassistant')
        """
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            parts, port = urlsplit(""), 0
        if not (parts.hostname and port) or parts.scheme not in _PORTS or parts.query or parts.fragment:
            shown = url if "@" not in url else "the address"
            raise BadInput(f"{shown} is not that of an MQTT broker: write it like mqtt://user@host:1883/topic")
        if parts.password is not None:
            raise BadInput(f"the MQTT address has a password, which others can read: set {_MQTT_PASSWORD} instead")
        topic = unquote(parts.path).strip("/")
        if any(sign in topic + discovery for sign in "+#\0"):
            raise BadInput(f"'{topic}' and '{discovery}' have to be topics to publish to: leave out + and #")
        user = unquote(parts.username or "")
        return cls(parts.hostname, port, parts.scheme == "mqtts", user, password, topic, discovery.strip("/"))


@dataclass(frozen=True)
class EventOptions:
    """Where events are sent.

    Attributes:
        mqtt: The broker, if any.
        webhooks: Addresses of webhooks.
        webhook_secret: What requests to them are signed with.
        predictions: Whether each prediction is an event.
    """

    mqtt: MqttAddress | None = None
    webhooks: tuple[str, ...] = ()
    webhook_secret: str = ""
    predictions: bool = False

    @classmethod
    def of(
        cls,
        mqtt: str | None,
        mqtt_password_file: Path | None,
        discovery: str,
        webhooks: Sequence[str],
        webhook_secret_file: Path | None,
        predictions: bool,
    ) -> EventOptions:
        """Return the options that a command line means; secrets are read from files or from the environment."""
        address = None
        if mqtt is not None:
            address = MqttAddress.parse(mqtt, _secret(mqtt_password_file, _MQTT_PASSWORD), discovery)
        secret = _secret(webhook_secret_file, _WEBHOOK_SECRET) or ""
        for url in webhooks:
            _check_webhook(url)
        if webhooks and not secret:
            raise BadInput(f"webhooks are signed: set {_WEBHOOK_SECRET}, or give a file with --webhook-secret-file")
        return cls(address, tuple(webhooks), secret, predictions)


def _secret(file: Path | None, variable: str) -> str | None:
    """Return the secret in a file, or else in a variable of the environment; None if neither is given."""
    if file is None:
        return os.environ.get(variable) or None
    try:
        secret = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read ({error}): give a file with a secret") from error
    if not secret:
        raise BadInput(f"{file} is empty: write a secret into it")
    return secret


def _check_webhook(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise BadInput(f"'{url}' is not the address of a webhook: write it like https://host/path")
