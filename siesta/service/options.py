"""What a service is started with."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from pathlib import Path

from siesta.errors import BadInput

__all__ = ["Limits", "Options", "is_loopback"]


@dataclass(frozen=True)
class Limits:
    """How much may come in.

    Attributes:
        body_bytes: Of a request.
        pixels: Of a picture.
        images: Of a request.
        queue: Requests with pictures at a time, those that wait included.
        seconds: For a request.
    """

    body_bytes: int = 32 * 2**20
    pixels: int = 50_000_000
    images: int = 32
    queue: int = 64
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise BadInput(f"a limit is above zero and has an end, not {value}: {name}")


@dataclass(frozen=True)
class Options:
    """Everything but the learner itself.

    Attributes:
        host: Address to listen at.
        port: There; 0 takes any that is free.
        limits: How much may come in.
        durability: What an acknowledged sample survives, see `Siesta.open`.
        thumbnails: Whether small pictures of samples are kept.
        hosts: Names it answers to, besides those of its own address.
        origins: Sites whose scripts may call it.
        certificate: For TLS, with its key.
        key: Of the certificate.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    limits: Limits = field(default_factory=Limits)
    durability: str = "process"
    thumbnails: bool = True
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise BadInput("TLS needs both files: give --tls-cert and --tls-key")

    @property
    def local(self) -> bool:
        """Whether it listens on loopback, and answers to names of loopback only: then no token is asked for."""
        return all(is_loopback(name) for name in (self.host, *self.hosts))


def is_loopback(name: str) -> bool:
    """Whether a host name can be nothing but this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
