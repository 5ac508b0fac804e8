"""The OpenAPI schema against the service: schemathesis tries every route, and a client is generated from it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta.service.tokens import TokenStore
from tests.service.conftest import StartServer
from tests.service.server_process import ServerProcess, make_image

LEFT_OUT = [
    *("--exclude-path", "/v1/events"),  # the stream does not end
    *("--exclude-operation-id", "sleep_v1_sleep_post"),  # each request would start a process
    # A schema cannot say what a readable image or a label is, and on loopback no token is needed.
    *("--exclude-checks", "positive_data_acceptance,ignored_auth"),
]
# Each field of a form is text, so a label of a wrong type cannot be sent: `{}` is a label like any other.
CONFIG = """
[[operations]]
include-path = "/v1/learn"
checks.negative_data_rejection.enabled = false

[[operations]]
include-path = "/v1/reject"
checks.negative_data_rejection.enabled = false
"""


@pytest.fixture(scope="module")
def tried_server(start_server: StartServer) -> ServerProcess:
    server = start_server()
    with server.client() as client:
        client.learn([make_image("red", 1), make_image("blue", 1)], ["red", "blue"])
    return server


@pytest.mark.parametrize("examples", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_schemathesis_finds_nothing(tried_server: ServerProcess, tmp_path: Path, examples: int) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    run_schemathesis(tried_server, tmp_path, "--max-examples", str(examples), "--phases", "examples,coverage,fuzzing")
    assert "Traceback" not in tried_server.output()


def test_the_declared_security_opens_every_operation(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server("--host", "0.0.0.0")
    token = TokenStore(server.path).new("teach")
    (tmp_path / "schemathesis.toml").write_text(f'{CONFIG}\n[auth.openapi.bearer]\nbearer = "{token}"\n')
    options = ("--exclude-path", "/v1/session", "--max-examples", "1", "--phases", "fuzzing")  # it counts wrong tokens
    report = run_schemathesis(server, tmp_path, *options, "--mode", "positive")
    assert "Authentication failed" not in report and "Rate limited" not in report


def run_schemathesis(server: ServerProcess, folder: Path, *options: str) -> str:
    """Run schemathesis with the configuration in a folder and return its report."""
    command = ["schemathesis.cli", "run", f"{server.url}/openapi.json", "--seed", "1", "--no-color"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *LEFT_OUT, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


GENERATOR = "openapi-python-client==0.29.1"
USE_OF_GENERATED_CLIENT = """
import sys
from generated import AuthenticatedClient, Client
from generated.api.ask import predict_v1_predict_post
from generated.api.classes import classes_v1_classes_get
from generated.api.teach import learn_v1_learn_post
from generated.models import BodyLearnV1LearnPost, BodyPredictV1PredictPost
from generated.types import File

url, token, image = sys.argv[1:]
file = File(payload=open(image, "rb"), file_name="red.png", mime_type="image/png")
client = AuthenticatedClient(base_url=url, token=token)
learned = learn_v1_learn_post.sync(client=client, body=BodyLearnV1LearnPost(image=[file], label=["red"]))
assert learned.ids, learned
file.payload.seek(0)
predicted = predict_v1_predict_post.sync(client=client, body=BodyPredictV1PredictPost(image=[file]))
assert predicted.predictions[0].label == "red", predicted
assert [known.label for known in classes_v1_classes_get.sync(client=client).classes] == ["red"]
stranger = Client(base_url=url)
assert classes_v1_classes_get.sync_detailed(client=stranger).status_code == 401
print("done")
"""


@pytest.mark.slow
def test_a_generated_client_works_with_a_token(start_server: StartServer, tmp_path: Path) -> None:
    # The generator needs an older typer than the one that is pinned, so it gets an environment of its own.
    python = tmp_path / "env" / "bin" / "python"
    venv.create(tmp_path / "env", with_pip=True)
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", GENERATOR], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"{GENERATOR} cannot be installed here: {installed.stderr[-300:]}")
    server = start_server("--host", "0.0.0.0")
    (tmp_path / "red.png").write_bytes(make_image("red"))
    (tmp_path / "use.py").write_text(USE_OF_GENERATED_CLIENT)
    generate = ["-m", "openapi_python_client", "generate", "--url", f"{server.url}/openapi.json"]
    subprocess.run([python, *generate, "--meta", "none", "--output-path", "generated"], cwd=tmp_path, check=True)
    token = TokenStore(server.path).new("teach")
    used = subprocess.run(
        [python, "use.py", server.url, token, "red.png"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert used.stdout == "done\n", used.stderr


def test_every_route_has_a_description_examples_and_problems(server: ServerProcess) -> None:
    schema: dict[str, Any] = httpx.get(f"{server.url}/openapi.json").json()
    operations = [(path, operation) for path, item in schema["paths"].items() for operation in item.values()]
    assert len(operations) >= 20
    for path, operation in operations:
        assert operation["description"], path
        for status in ("401", "429", "503"):
            assert "application/problem+json" in operation["responses"][status]["content"], path
    assert schema["components"]["schemas"]["SleepRequest"]["examples"]
    assert schema["components"]["schemas"]["LabelRequest"]["properties"]["label"]["examples"]
