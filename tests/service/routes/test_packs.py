"""Routes of a sleeper, against its application in this process."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta import Siesta
from siesta.files import sha256
from siesta.learner import pack as packing
from siesta.learner.pack import pack_learner
from siesta.service import packs as packs_module
from siesta.service.options import RequestLimits, ServiceOptions
from siesta.service.packs import PackQueue
from siesta.service.sleeper import make_sleeper_app
from siesta.service.tokens import PACKS, TokenStore
from tests.learner.colours import labelled_pictures
from tests.service.event_loop import run_async


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    with Siesta.create(folder / "a.siesta", image_size=32) as learner:
        learner.learn_many(*labelled_pictures(2))
    pack_learner(folder / "a.siesta", folder / "pack")
    return folder / "pack"


class Sleeper:
    """The application of a sleeper that never begins a sleep."""

    def __init__(self, folder: Path, options: ServiceOptions) -> None:
        self.folder = folder
        self.tokens = TokenStore(folder)
        self.queue = PackQueue(folder / PACKS, 2, threads=1, nice=0)
        self._app = make_sleeper_app(self.queue, folder, options, self.tokens)

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **options)

        return run_async(request())

    def send_pack(self, file: Path) -> str:
        response = self.send("POST", "/v1/packs", content=file.read_bytes())
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def files(self) -> list[str]:
        return [str(file.relative_to(self.folder / PACKS)) for file in (self.folder / PACKS).rglob("*")]


@pytest.fixture
def options() -> ServiceOptions:
    return ServiceOptions(limits=RequestLimits(body_bytes=2**25))


@pytest.fixture
def sleeper(tmp_path: Path, options: ServiceOptions, monkeypatch: pytest.MonkeyPatch) -> Sleeper:
    monkeypatch.setattr(packing, "cache_folder", lambda name: tmp_path / "cache" / name)
    (tmp_path / "packs folder").mkdir()
    return Sleeper(tmp_path / "packs folder", options)


def assert_problem(response: httpx.Response, status: int, detail: str) -> None:
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    assert detail in response.json()["detail"]


def test_a_pack_is_received_waits_and_is_deleted(sleeper: Sleeper, packed: Path) -> None:
    pack = sleeper.send_pack(packed)
    assert sorted(sleeper.files()) == [pack, f"{pack}/pack"]
    assert sleeper.send("GET", f"/v1/packs/{pack}/sleep").json()["state"] == "never"
    assert_problem(sleeper.send("GET", f"/v1/packs/{pack}"), 409, "has not slept")
    begun = sleeper.send("POST", f"/v1/packs/{pack}/sleep", json={"updates": 4, "seed": 3})
    assert (begun.status_code, begun.json()["state"], begun.json()["running"]) == (202, "waiting", True)
    assert_problem(sleeper.send("POST", f"/v1/packs/{pack}/sleep/wake"), 409, "nothing to wake")
    assert sleeper.send("DELETE", f"/v1/packs/{pack}").status_code == 204
    assert sleeper.files() == []
    assert_problem(sleeper.send("GET", f"/v1/packs/{pack}/sleep"), 404, "no such pack")


def test_what_is_no_pack_is_refused_and_leaves_nothing(sleeper: Sleeper, packed: Path) -> None:
    whole = packed.read_bytes()
    for body, status, detail in (
        (b"something", 422, "what was sent is not a pack"),
        (whole[:-1], 422, "what was sent is damaged or not complete"),
        (b"", 422, "is not a pack"),
    ):
        response = sleeper.send("POST", "/v1/packs", content=body)
        assert_problem(response, status, detail)
        assert str(sleeper.folder) not in response.text
        assert sleeper.files() == []


@pytest.mark.parametrize("options", [ServiceOptions(limits=RequestLimits(body_bytes=10**6))])
def test_a_pack_beyond_the_limit_is_refused(sleeper: Sleeper, packed: Path) -> None:
    assert_problem(sleeper.send("POST", "/v1/packs", content=packed.read_bytes()), 413, "at most 1,000,000 bytes")

    async def blocks() -> Any:
        yield packed.read_bytes()

    response = sleeper.send("POST", "/v1/packs", content=blocks())
    assert_problem(response, 400, "Content-Length")
    assert sleeper.files() == []


def test_a_few_packs_are_kept_at_a_time(sleeper: Sleeper, packed: Path) -> None:
    sleeper.send_pack(packed)
    sleeper.send_pack(packed)
    assert_problem(sleeper.send("POST", "/v1/packs", content=packed.read_bytes()), 429, "has 2 packs already")


def test_a_disk_without_room_is_not_filled(sleeper: Sleeper, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(sleeper.folder)._replace(free=10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert_problem(sleeper.send("POST", "/v1/packs", content=packed.read_bytes()), 503, "too little room")


def test_options_are_checked_and_name_no_files(sleeper: Sleeper, packed: Path) -> None:
    pack = sleeper.send_pack(packed)
    for options, detail in (
        ({"judge": "/etc"}, "judge is not a known field"),
        ({"until": "06:30"}, "until is not a known field"),
        ({"policy": "wild"}, "no policy 'wild'"),
        ({"optimizer": "none"}, "none"),
        ({"updates": 0}, "updates"),
        ({"updates": 1, "seconds": 1.0}, "at most one budget"),
    ):
        assert_problem(sleeper.send("POST", f"/v1/packs/{pack}/sleep", json=options), 422, detail)
    assert sleeper.send("GET", f"/v1/packs/{pack}/sleep").json()["state"] == "never"


@pytest.mark.parametrize("name", ["..", "%2e%2e%2ftokens.json", "A" * 32, "0" * 31, "0" * 33])
def test_no_name_of_a_client_is_a_path(name: str, sleeper: Sleeper) -> None:
    for method, path in (("GET", f"/v1/packs/{name}"), ("DELETE", f"/v1/packs/{name}"), ("GET", f"/v1/bottoms/{name}")):
        assert sleeper.send(method, path).status_code in (404, 405, 422)


def test_a_bottom_is_known_by_its_hash(sleeper: Sleeper, packed: Path) -> None:
    with packing.unpacked(packing.open_pack(packed)) as folder:
        expected = sha256(folder / "bottom.safetensors")
    assert sleeper.send("GET", f"/v1/bottoms/{expected}").json() == {"known": True}
    assert sleeper.send("GET", f"/v1/bottoms/{'0' * 64}").json() == {"known": False}


@pytest.mark.parametrize("options", [ServiceOptions(host="192.0.2.1")])
def test_every_endpoint_needs_a_token_for_sleeping(sleeper: Sleeper) -> None:
    secrets = {scope: sleeper.tokens.new(scope) for scope in ("ask", "teach", "sleep")}
    pack = "0" * 32
    for method, path in (
        ("GET", f"/v1/bottoms/{'0' * 64}"),
        ("POST", "/v1/packs"),
        ("POST", f"/v1/packs/{pack}/sleep"),
        ("GET", f"/v1/packs/{pack}/sleep"),
        ("POST", f"/v1/packs/{pack}/sleep/wake"),
        ("GET", f"/v1/packs/{pack}"),
        ("DELETE", f"/v1/packs/{pack}"),
    ):

        def status(secret: str | None, method: str = method, path: str = path) -> int:
            headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
            return sleeper.send(method, path, headers={**headers, "Host": "192.0.2.1"}).status_code

        assert status(None) == 401
        assert (status(secrets["ask"]), status(secrets["teach"])) == (403, 403)
        assert status(secrets["sleep"]) not in (401, 403)


def test_a_pack_of_which_nobody_asks_is_deleted(
    sleeper: Sleeper, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper.send_pack(packed)

    async def run_for_a_while() -> None:
        task = asyncio.create_task(sleeper.queue.run())
        await asyncio.sleep(0.1)
        assert len(sleeper.files()) == 2
        monkeypatch.setattr(packs_module, "LEASE_SECONDS", 0.0)
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not sleeper.files():
                break
        task.cancel()

    run_async(run_for_a_while())
    assert sleeper.files() == []


def test_the_schema_says_what_each_operation_needs(sleeper: Sleeper) -> None:
    document = sleeper.send("GET", "/openapi.json").json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) == 7
    assert all(operation["security"] == [{"bearer": ["sleep"]}, {"cookie": ["sleep"]}] for operation in operations)
