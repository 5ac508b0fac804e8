"""Options of the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.service.options import RequestLimits, ServiceOptions


@pytest.mark.parametrize(
    ("host", "hosts", "loopback_only"),
    [
        ("127.0.0.1", (), True),
        ("::1", (), True),
        ("localhost", (), True),
        ("0.0.0.0", (), False),
        ("192.0.2.7", (), False),
        ("127.0.0.1", ("birds.example",), False),
        ("127.0.0.1", ("localhost",), True),
    ],
)
def test_a_service_is_on_loopback_only_if_all_its_names_are(
    host: str, hosts: tuple[str, ...], loopback_only: bool
) -> None:
    assert ServiceOptions(host=host, hosts=hosts).loopback_only is loopback_only


@pytest.mark.parametrize("name", ["body_bytes", "pixels", "images", "queue", "seconds"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_finite_and_above_zero(name: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"the limit '{name}' is {value}: give a finite number above zero"):
        RequestLimits(**{name: value})


def test_a_certificate_needs_its_key_and_the_other_way_round() -> None:
    with pytest.raises(BadInput, match="give both --tls-cert and --tls-key"):
        ServiceOptions(certificate=Path("cert.pem"))
    with pytest.raises(BadInput, match="give both --tls-cert and --tls-key"):
        ServiceOptions(key=Path("key.pem"))
