"""Options that a service is started with."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from pathlib import Path

from siesta.errors import BadInput
from siesta.images import MAX_PIXELS
from siesta.service.events.options import EventOptions

__all__ = ["RequestLimits", "ServiceOptions", "is_loopback"]


@dataclass(frozen=True)
class RequestLimits:
    """Limits on what clients may send.

    Attributes:
        body_bytes: Bytes of a request's body.
        pixels: Pixels of an image.
        images: Images of a request.
        queue: Requests with images at a time, waiting ones included.
        seconds: Time for a request.

    Example:
        >>> RequestLimits(images=8).images
        8
    """

    body_bytes: int = 32 * 2**20
    pixels: int = MAX_PIXELS
    images: int = 32
    queue: int = 64
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise BadInput(f"the limit '{name}' is {value}: give a finite number above zero")


@dataclass(frozen=True)
class ServiceOptions:
    """Options of a service.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 takes any free port.
        limits: Limits on requests.
        durability: What an acknowledged sample survives, see `Siesta.open`.
        thumbnails: Whether thumbnails of samples are kept.
        hosts: Host names that are accepted besides the service's own address.
        origins: Sites whose scripts may call the service.
        certificate: TLS certificate, needs `key`.
        key: Private key of the certificate.
        events: Where events are sent.
        sleeper: Address of a service that trains in place of this machine.
        sleeper_token: A file with the token for it.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    limits: RequestLimits = field(default_factory=RequestLimits)
    durability: str = "process"
    thumbnails: bool = True
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    events: EventOptions = field(default_factory=EventOptions)
    sleeper: str | None = None
    sleeper_token: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise BadInput("TLS needs a certificate and its key: give both --tls-cert and --tls-key")

    @property
    def loopback_only(self) -> bool:
        """Whether the address and all accepted names are loopback; no token is needed then."""
        return all(is_loopback(name) for name in (self.host, *self.hosts))


def is_loopback(name: str) -> bool:
    """Return whether a host name can only mean this machine.

    Example:
        >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("birds.example")
        (True, True, False)
    """
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
