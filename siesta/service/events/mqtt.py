"""Events as MQTT messages, with discovery by Home Assistant.

siesta/birds/status      "online" or "offline"
siesta/birds/learned     the last event of each name, retained; so are predicted, slept and drift
homeassistant/...        what Home Assistant shows, retained
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from threading import Event as Flag
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from siesta import __version__
from siesta.service.events.event import Event
from siesta.service.events.options import MqttAddress
from siesta.service.events.sink import NotDelivered, Sink

__all__ = ["Mqtt", "discovery_messages"]

_KEEPALIVE = 30
_LONGEST_PAUSE = 60  # seconds between two attempts to connect
_PAUSE = 0.5  # seconds until an event is tried again, which needs a connection
_ACKNOWLEDGE_SECONDS = 10.0
_AT_LEAST_ONCE = 1
_log = logging.getLogger(__name__)


class Mqtt(Sink):
    """Publishes events to a broker, which may be away: the client connects again by itself."""

    def __init__(self, address: MqttAddress, learner: str, predicts: bool = False) -> None:
        """Create the queue and the client.

        Args:
            address: The broker, and below which topic to publish.
            learner: Name of the learner's folder.
            predicts: Whether predictions are published, too.
        """
        super().__init__(f"mqtt://{address.host}:{address.port}", _PAUSE, _PAUSE)
        self._address = address
        self._topic = address.topic or f"siesta/{_identifier(learner)}"
        self._discovery = list(discovery_messages(address.discovery, self._topic, learner, predicts))
        self._connected = Flag()
        self._client = Client(CallbackAPIVersion.VERSION2, client_id=f"siesta-{_identifier(self._topic)}")
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.reconnect_delay_set(1, _LONGEST_PAUSE)
        self._client.will_set(f"{self._topic}/status", "offline", _AT_LEAST_ONCE, retain=True)
        if address.user:
            self._client.username_pw_set(address.user, address.password)
        if address.tls:
            self._client.tls_set()

    def start(self) -> None:
        """Start to connect and to deliver."""
        self._client.connect_async(self._address.host, self._address.port, _KEEPALIVE)
        self._client.loop_start()
        super().start()

    def close(self) -> None:
        """Deliver what still waits, for two seconds at most, and say that the service is offline."""
        super().close()
        if self._connected.is_set():
            self._publish("status", "offline")
        self._client.disconnect()
        self._client.loop_stop()

    def deliver(self, event: Event) -> None:
        """Publish one event, and wait until the broker has it."""
        if not self._connected.is_set():
            raise NotDelivered("there is no connection")
        self._publish(event.name, event.encoded())

    def _publish(self, name: str, payload: str | bytes) -> None:
        sent = self._client.publish(f"{self._topic}/{name}", payload, _AT_LEAST_ONCE, retain=True)
        try:
            sent.wait_for_publish(_ACKNOWLEDGE_SECONDS)
        except RuntimeError:  # the connection was lost; the client has the message and sends it after the next one
            return

    def _on_connect(
        self, client: Client, _data: Any, _flags: ConnectFlags, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        if reason.is_failure:
            _log.warning("%s refuses the connection: %s", self.name, reason)
            return
        for topic, payload in self._discovery:
            client.publish(topic, json.dumps(payload), _AT_LEAST_ONCE, retain=True)
        client.publish(f"{self._topic}/status", "online", _AT_LEAST_ONCE, retain=True)
        self._connected.set()

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: DisconnectFlags, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        self._connected.clear()
        if reason.is_failure and not self._closing.is_set():
            _log.warning("the connection to %s was lost (%s): it is made again", self.name, reason)


def discovery_messages(prefix: str, topic: str, learner: str, predicts: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the topic and the content of each message by which Home Assistant finds a learner.

    Args:
        prefix: Home Assistant's prefix of such topics; nothing is yielded for an empty one.
        topic: Topic below which events are published.
        learner: Name of the learner's folder.
        predicts: Whether predictions are published, too.
    """
    if not prefix:
        return
    node = _identifier(topic)
    device = {"identifiers": [node], "name": learner, "manufacturer": "siesta", "sw_version": __version__}
    shared = {"availability_topic": f"{topic}/status", "device": device}
    for kind, name, event, template, more in _entities(predicts):
        key = _identifier(name)
        yield (
            f"{prefix}/{kind}/{node}/{key}/config",
            {
                "name": name,
                "unique_id": f"{node}_{key}",
                "state_topic": f"{topic}/{event}",
                "value_template": "{{ " + template + " }}",
                "json_attributes_topic": f"{topic}/{event}",
                "json_attributes_template": "{{ value_json.data | tojson }}",
                **more,
                **shared,
            },
        )


def _entities(predicts: bool) -> Iterator[tuple[str, str, str, str, dict[str, str]]]:
    """Yield component, name, event, template of the value, and further keys of each entity."""
    if predicts:
        yield "sensor", "Prediction", "predicted", "value_json.data.label", {}
    yield "sensor", "Learned", "learned", "value_json.data.labels | join(', ')", {}
    yield "sensor", "Classes", "learned", "value_json.data.classes", {"state_class": "measurement"}
    yield "sensor", "Last sleep", "slept", "value_json.time", {"device_class": "timestamp"}
    accuracy = "(100 * value_json.data.accuracy_after) | round(1) if value_json.data.accuracy_after is number else None"
    yield "sensor", "Accuracy", "slept", accuracy, {"unit_of_measurement": "%", "state_class": "measurement"}
    drift = "'ON' if value_json.data.drifting else 'OFF'"
    yield "binary_sensor", "Drift", "drift", drift, {"device_class": "problem"}


def _identifier(text: str) -> str:
    """Return a text with letters, digits and underscores only, as topics and ids have them.

    Example:
        >>> _identifier("birds of the garden.siesta")
        'birds_of_the_garden'
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text.removesuffix(".siesta")).strip("_") or "learner"
