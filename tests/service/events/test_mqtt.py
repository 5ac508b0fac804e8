"""Events over MQTT, with Debian's mosquitto: discovery, an absent broker, and a whole service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from siesta.service.client import Client
from siesta.service.events import Event, MqttAddress
from siesta.service.events.mqtt import Mqtt, discovery_messages
from siesta.service.events.options import DISCOVERY
from tests.service.events.receivers import Broker, Subscriber, http_receiver, wait_until
from tests.service.server_process import ServerProcess, make_image


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.start()
    yield broker
    broker.stop()


def mqtt(port: int, user: str = "", password: str = "", topic: str = "", discovery: str = DISCOVERY) -> Mqtt:
    return Mqtt(MqttAddress("127.0.0.1", port, False, user, password, topic, discovery), "birds.siesta")


def test_home_assistant_finds_the_learner_and_its_status(broker: Broker) -> None:
    sink = mqtt(broker.port)
    sink.start()
    subscriber = Subscriber(broker.port)
    assert subscriber.wait_for("siesta/birds/status") == [b"online"]
    drift = json.loads(subscriber.wait_for("homeassistant/binary_sensor/siesta_birds/Drift/config")[0])
    assert drift["state_topic"] == "siesta/birds/drift"
    assert drift["availability_topic"] == "siesta/birds/status"
    sink.close()
    assert subscriber.wait_for("siesta/birds/status", 2)[-1] == b"offline"
    subscriber.close()


def test_events_wait_for_an_absent_broker_and_the_last_one_is_retained(broker: Broker) -> None:
    broker.stop()
    sink = mqtt(broker.port, topic="garden", discovery="")
    sink.start()
    for number in range(3):
        sink.put(Event("learned", "birds.siesta", {"number": number}))
    broker.start()
    subscriber = Subscriber(broker.port)
    wait_until(lambda: subscriber.of("garden/learned")[-1:] and not sink._queue, "the delivery")
    broker.stop()
    sink.put(Event("learned", "birds.siesta", {"number": 3}))
    broker.start()
    late = Subscriber(broker.port)
    wait_until(lambda: json.loads((late.of("garden/learned") or [b"{}"])[-1]).get("data") == {"number": 3}, "the last")
    assert not any(topic.startswith("homeassistant") for topic, _ in late.messages)
    sink.close()
    for each in (subscriber, late):
        each.close()


def test_a_wrong_password_is_reported_and_a_right_one_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(tmp_path, password="hush")
    broker.start()
    wrong, right = (mqtt(broker.port, user="anna", password=password) for password in ("loud", "hush"))
    wrong.start()
    wait_until(lambda: "refuses the connection" in caplog.text, "a warning")
    assert "loud" not in caplog.text
    right.start()
    subscriber = Subscriber(broker.port, "anna", "hush")
    assert subscriber.wait_for("siesta/birds/status") == [b"online"]
    for each in (wrong, right, subscriber):
        each.close()
    broker.stop()


def test_predictions_are_an_entity_where_they_are_published() -> None:
    without, with_them = (dict(discovery_messages("ha", "t", "birds", predicts)) for predicts in (False, True))
    assert with_them.keys() - without.keys() == {"ha/sensor/t/Prediction/config"}
    ids = [message["unique_id"] for message in with_them.values()]
    assert len(set(ids)) == len(ids)
    assert list(discovery_messages("", "t", "birds", True)) == []


def test_a_service_learns_on_while_the_broker_is_away(
    broker: Broker, learner_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIESTA_WEBHOOK_SECRET", "a secret that is long enough")
    with http_receiver() as receiver:
        address = f"mqtt://127.0.0.1:{broker.port}/birds"
        server = ServerProcess(learner_path, "--mqtt", address, "--webhook", receiver.url, "--publish-predictions")
        subscriber = Subscriber(broker.port)
        with Client(server.url) as client:
            ids = client.learn([make_image("red", 1), make_image("blue", 1)], ["red", "blue"])
            learned = json.loads(subscriber.wait_for("birds/learned")[0])["data"]
            assert learned == {"ids": ids, "labels": {"red": 1, "blue": 1}, "classes": 2, "generation": 0}
            answer = client.predict(make_image("red", 9))
            predicted = json.loads(subscriber.wait_for("birds/predicted")[0])["data"]
            assert (predicted["label"], predicted["score"]) == (answer.label, answer.score)
            broker.stop()
            late = client.learn(make_image("red", 2), "red")
            assert client.predict(make_image("red", 9)).label == "red"
        wait_until(lambda: len(receiver.requests) == 4, "four requests to the webhook")
        names = [json.loads(body)["event"] for _, body in receiver.requests]
        assert names == ["learned", "predicted", "learned", "predicted"]
        broker.start()
        again = Subscriber(broker.port)
        again_ids = json.loads(again.wait_for("birds/learned")[-1])["data"]["ids"]
        assert again_ids == late
        server.stop()
        again.close()
        subscriber.close()
