"""Where events are sent: addresses, and secrets that are never on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.service.events import EventOptions, MqttAddress


def options(
    mqtt: str | None = None, webhooks: tuple[str, ...] = (), password: Path | None = None, secret: Path | None = None
) -> EventOptions:
    return EventOptions.of(mqtt, password, "homeassistant", webhooks, secret, False)


def test_nothing_is_sent_by_default() -> None:
    assert options() == EventOptions()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://broker", MqttAddress("broker", 1883)),
        ("mqtts://broker", MqttAddress("broker", 8883, tls=True)),
        ("mqtt://anna%40home@[::1]:99/a/b/", MqttAddress("::1", 99, user="anna@home", topic="a/b")),
    ],
)
def test_an_address_has_host_port_user_and_topic(url: str, expected: MqttAddress) -> None:
    assert MqttAddress.parse(url) == expected


@pytest.mark.parametrize("url", ["broker", "http://broker", "mqtt://", "mqtt://b:x", "mqtt://b:99999", "mqtt://b?x=1"])
def test_another_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="write it like mqtt://"):
        options(url)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    for url in ("mqtt://anna:hush@broker", "http://anna:hush@broker"):
        with pytest.raises(BadInput) as caught:
            options(url)
        assert "hush" not in str(caught.value)


def test_a_topic_with_a_wildcard_is_refused() -> None:
    with pytest.raises(BadInput, match="leave out"):
        options("mqtt://broker/a/%23")


def test_secrets_come_from_the_environment_or_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = ("https://example.org/hook",)
    with pytest.raises(BadInput, match="set SIESTA_WEBHOOK_SECRET, or give a file"):
        options(webhooks=hook)
    monkeypatch.setenv("SIESTA_WEBHOOK_SECRET", "from the environment")
    monkeypatch.setenv("SIESTA_MQTT_PASSWORD", "hush")
    found = options("mqtt://anna@broker", hook)
    assert found.webhook_secret == "from the environment"
    assert found.mqtt == MqttAddress("broker", 1883, user="anna", password="hush")
    (tmp_path / "secret").write_text("from the file\n")
    assert options(webhooks=hook, secret=tmp_path / "secret").webhook_secret == "from the file"
    (tmp_path / "empty").touch()
    with pytest.raises(BadInput, match="is empty"):
        options(webhooks=hook, secret=tmp_path / "empty")
    with pytest.raises(BadInput, match="cannot be read"):
        options("mqtt://broker", password=tmp_path / "missing")


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "http://", "http://[::1", "http://a:99999"])
def test_an_address_of_a_webhook_is_http(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIESTA_WEBHOOK_SECRET", "a long enough secret")
    with pytest.raises(BadInput, match="write it like https://"):
        options(webhooks=(url,))
