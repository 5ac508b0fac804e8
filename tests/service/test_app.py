"""The application: page and static files with their types, and the order of middleware."""

from __future__ import annotations

import pytest

from tests.service.conftest import Send


def test_the_page_may_be_cached_but_has_to_be_revalidated(send: Send) -> None:
    page = send("GET", "/")
    assert page.headers["content-type"].startswith("text/html") and page.headers["cache-control"] == "no-cache"
    assert send("GET", "/v1/classes").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("main.js", "text/javascript"), ("variables.css", "text/css"), ("icon.svg", "image/svg+xml")],
)
def test_a_static_file_has_its_type_and_a_tag(send: Send, name: str, media_type: str) -> None:
    file = send("GET", f"/static/{name}")
    assert file.headers["content-type"].startswith(media_type)
    assert file.headers["x-content-type-options"] == "nosniff"
    assert send("GET", f"/static/{name}", headers={"If-None-Match": file.headers["etag"]}).status_code == 304


def test_pages_that_load_scripts_from_elsewhere_are_not_served(send: Send) -> None:
    assert [send("GET", path).status_code for path in ("/docs", "/redoc")] == [404, 404]
    assert send("GET", "/openapi.json").status_code == 200


def test_the_schema_names_the_cookie_as_the_service_sets_it(send: Send) -> None:
    for host, name in (("localhost:8001", "siesta_token_8001"), ("localhost", "siesta_token")):
        schemes = send("GET", "/openapi.json", headers={"Host": host}).json()["components"]["securitySchemes"]
        assert schemes["cookie"]["name"] == name
        assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == ("http", "bearer")
    assert send("HEAD", "/openapi.json").status_code == 200


def test_refused_requests_have_security_headers_and_are_counted(send: Send) -> None:
    refused = send("GET", "/v1/classes", headers={"Host": "evil.example"})
    assert refused.status_code == 400
    assert "default-src 'none'" in refused.headers["content-security-policy"]
    assert 'siesta_requests_total{method="GET",route="other",status="400"} 1.0' in send("GET", "/metrics").text
