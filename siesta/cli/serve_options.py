"""Options of `siesta serve`, as types of its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllowHostOption",
    "CertificateOption",
    "DiscoveryOption",
    "DurabilityOption",
    "HostOption",
    "KeyOption",
    "MqttOption",
    "MqttPasswordFileOption",
    "OriginOption",
    "PublishPredictionsOption",
    "ThumbnailsOption",
    "WebhookOption",
    "WebhookSecretFileOption",
]

HostOption = Annotated[str, typer.Option(help="Address to listen on; a token is required except on loopback.")]
DurabilityOption = Annotated[
    str, typer.Option(help="What acknowledged samples survive: a kill of the process, or a loss of power (power).")
]
ThumbnailsOption = Annotated[
    bool, typer.Option("--thumbnails/--no-thumbnails", help="Keep thumbnails of samples within the budget.")
]
OriginOption = Annotated[list[str] | None, typer.Option(help="Site whose scripts may call the service; repeatable.")]

MqttOption = Annotated[
    str | None, typer.Option(help="MQTT broker to send events to, such as mqtt://user@host:1883/topic.", metavar="URL")
]
MqttPasswordFileOption = Annotated[
    Path | None, typer.Option(help="File with the broker's password; else SIESTA_MQTT_PASSWORD in the environment.")
]
DiscoveryOption = Annotated[
    str, typer.Option(help="Home Assistant's prefix of topics for discovery; empty for none.", metavar="PREFIX")
]
WebhookOption = Annotated[
    list[str] | None, typer.Option(help="Address that events are sent to, signed; repeatable.", metavar="URL")
]
WebhookSecretFileOption = Annotated[
    Path | None, typer.Option(help="File with the webhooks' secret; else SIESTA_WEBHOOK_SECRET in the environment.")
]
PublishPredictionsOption = Annotated[bool, typer.Option(help="Send each prediction as an event, too.")]
CertificateOption = Annotated[Path | None, typer.Option(help="TLS certificate in PEM, for https.")]
KeyOption = Annotated[Path | None, typer.Option(help="Private key of the certificate in PEM.")]
AllowHostOption = Annotated[list[str] | None, typer.Option(help="Further host name to accept; repeatable.")]
