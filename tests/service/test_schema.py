"""The schema says what the service does: schemathesis tries it, and finds no error of ours and no difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Serve
from tests.service.running import Running, picture

LEFT_OUT = [
    *("--exclude-path", "/v1/events"),  # it does not end
    *("--exclude-operation-id", "sleep_v1_sleep_post"),  # each would begin a process
    *("--exclude-checks", "positive_data_acceptance"),  # no schema says what a picture or a label is
]


@pytest.fixture(scope="module")
def tried(serve: Serve) -> Running:
    running = serve()
    with running.client() as client:
        client.learn([picture("red", 1), picture("blue", 1)], ["red", "blue"])
    return running


@pytest.fixture(scope="module")
def schema(tried: Running) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{tried.url}/openapi.json").json()
    return found


@pytest.mark.parametrize("examples", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_schemathesis_finds_nothing(tried: Running, tmp_path: Path, examples: int) -> None:
    command = ["schemathesis.cli", "run", f"{tried.url}/openapi.json", "--max-examples", str(examples), "--seed", "1"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *LEFT_OUT, "--phases", "examples,coverage,fuzzing", "--no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "Traceback" not in tried.said()


def test_every_route_has_words_examples_and_problems(schema: dict[str, Any]) -> None:
    operations = [(path, operation) for path, item in schema["paths"].items() for operation in item.values()]
    assert len(operations) >= 20
    for path, operation in operations:
        assert operation["description"], path
        for status in ("401", "429", "503"):
            assert "application/problem+json" in operation["responses"][status]["content"], path
    assert schema["components"]["schemas"]["Budget"]["examples"]
    assert schema["components"]["schemas"]["NewLabel"]["properties"]["label"]["examples"]


def test_a_wrong_method_is_told_the_right_ones(tried: Running) -> None:
    for path, methods in (("/v1/session", "DELETE, POST"), ("/v1/classes/1", "DELETE, PATCH"), ("/v1/learn", "POST")):
        answer = httpx.put(tried.url + path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
