"""Random and randomly changed input to every reader of files and requests: it is used, or refused in one sentence.

Each reader gets whole inputs of its own format with bytes changed, removed, repeated or put in, and inputs made of the
words of the format. The quick tests take some hundred inputs each, always the same; the slow ones many thousands.
"""

from __future__ import annotations

import io
import json
import tomllib
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from fastapi import APIRouter, FastAPI, Request
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save
from torch import nn

from siesta.backbones.checkpoints import load_weights
from siesta.errors import BadInput, Damaged, SiestaError
from siesta.experiment import load_config
from siesta.images import read_image, read_opened
from siesta.service.multipart import ImageRoute
from siesta.service.uploads import open_upload
from siesta.sleep.resume import load_run, save_run
from siesta.store.labels import clean_label
from tests.service.event_loop import run_async
from tests.service.malformed import bad_files, unusual_images
from tests.service.server_process import multipart_body

T = TypeVar("T")
SIZE = 32
CONFIGS = Path(__file__).parents[2] / "configs"

quick_and_slow = pytest.mark.parametrize("examples", [150, pytest.param(5_000, marks=pytest.mark.slow)])


def fuzz(inputs: st.SearchStrategy[T], check: Callable[[T], None], examples: int) -> None:
    """Call `check` with so many inputs; the same ones in every run."""
    slow_inputs = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    phases = [Phase.generate, Phase.shrink]
    settings(max_examples=examples, suppress_health_check=slow_inputs, phases=phases)(given(inputs)(check))()


@st.composite
def changed(draw: st.DrawFn, originals: Sequence[bytes]) -> bytes:
    """An original with a few changes, or any bytes."""
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, max(len(content) - 1, 0)))
        match draw(st.sampled_from(["set", "flip", "put in", "cut", "remove", "repeat", "splice"])):
            case "set":
                content[position : position + 1] = draw(st.binary(min_size=1, max_size=8))
            case "flip" if content:
                content[position] ^= 1 << draw(st.integers(0, 7))
            case "put in":
                content[position:position] = draw(st.binary(max_size=12))
            case "cut":
                del content[position:]
            case "remove":
                del content[position : position + draw(st.integers(1, 64))]
            case "repeat":
                content[position:position] = content[position : position + draw(st.integers(1, 64))]
            case _:
                content[position:] = draw(st.sampled_from(originals))[position:]
    return bytes(content)


def assert_one_sentence(error: SiestaError) -> None:
    message = str(error)
    assert message and len(message) < 2_000 and "\n" not in message and message.isprintable(), message


# -- images -----------------------------------------------------------------------------------------------------------


@cache
def images() -> list[bytes]:
    """Readable and unreadable files, in the formats of uploads and in others."""
    files = [*unusual_images().values(), *(content for content in bad_files().values() if len(content) < 20_000)]
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8))
    for name in ("BMP", "TIFF", "PPM", "TGA", "ICO", "PCX", "SGI", "DIB", "JPEG2000", "AVIF"):
        data = io.BytesIO()
        try:
            picture.save(data, name)
        except (KeyError, OSError):  # this Pillow cannot write it
            continue
        files.append(data.getvalue())
    return files


@quick_and_slow
def test_an_image_file_is_read_or_refused(tmp_path: Path, examples: int) -> None:
    file = tmp_path / "picture"

    def check(content: bytes) -> None:
        file.write_bytes(content)
        try:
            pixels = read_image(file, SIZE)
        except BadInput as error:
            assert_one_sentence(error)
        else:
            assert pixels.shape == (SIZE, SIZE, 3) and pixels.dtype == np.uint8

    fuzz(changed(images()), check, examples)


@quick_and_slow
def test_an_upload_is_decoded_or_refused(examples: int) -> None:
    def check(content: bytes) -> None:
        try:
            image = open_upload(io.BytesIO(content), "image 1", SIZE, 10**6)
            pixels = read_opened(image, SIZE, "image 1")
        except BadInput as error:
            assert_one_sentence(error)
        else:
            assert pixels.shape == (SIZE, SIZE, 3) and pixels.dtype == np.uint8

    fuzz(changed(images()), check, examples)


# -- multipart forms --------------------------------------------------------------------------------------------------

Fields = list[tuple[str, bytes]]
Answer = tuple[int, Fields]


@cache
def form_app() -> FastAPI:
    """An endpoint that answers with the fields of its form, by the parser of the service's own endpoints."""
    router = APIRouter(route_class=ImageRoute)

    @router.post("/")
    async def fields(request: Request) -> list[tuple[str, str]]:
        async with request.form() as form:
            values = [
                (name, value if isinstance(value, str) else await value.read()) for name, value in form.multi_items()
            ]
        return [(name, (value.encode() if isinstance(value, str) else value).hex()) for name, value in values]

    app = FastAPI()
    app.include_router(router)
    return app


async def post(chunks: Sequence[bytes], content_type: str) -> Answer:
    """Send a body in these chunks; return the status and the fields that the endpoint saw."""
    pending = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    pending.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return pending.pop(0) if pending else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", content_type.encode("latin-1"))]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    await form_app()(scope, receive, send)
    status: int = sent[0]["status"]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    fields = [(name, bytes.fromhex(content)) for name, content in json.loads(body)] if status == 200 else []
    return status, fields


def ask(chunks: Sequence[bytes], content_type: str) -> Answer:
    return run_async(post(chunks, content_type))


def split(body: bytes, positions: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(position % (len(body) + 1) for position in positions), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


POSITIONS = st.lists(st.integers(0, 10_000), max_size=6)
FORM = (("image", b"\x89PNG\r\n\x1a\n--edge\r\n"), ("label", "fünf"), ("label", ""), ("key", "1\r\n--edg"))


@quick_and_slow
def test_a_form_is_parsed_or_refused_and_its_chunks_do_not_matter(examples: int) -> None:
    body, content_type = multipart_body(*FORM)

    def check(sent: tuple[bytes, list[int]]) -> None:
        content, positions = sent
        whole = ask([content], content_type)
        assert whole[0] in (200, 400, 422)
        assert ask(split(content, positions), content_type) == whole

    fuzz(st.tuples(changed([body]), POSITIONS), check, examples)


@quick_and_slow
def test_every_field_of_a_form_arrives_and_a_form_cut_short_is_refused(examples: int) -> None:
    names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    fields = st.lists(st.tuples(names, st.binary(max_size=300) | texts), max_size=6)

    def check(sent: tuple[list[tuple[str, bytes | str]], list[int], int]) -> None:
        values, positions, cut = sent
        body, content_type = multipart_body(*values)
        expected = [(name, value if isinstance(value, bytes) else value.encode()) for name, value in values]
        if any(b"--edge" in value for _, value in expected):
            return
        assert ask(split(body, positions), content_type) == (200, expected)
        end = len(body) - len(b"--\r\n")
        assert ask([body[: cut % end]], content_type)[0] in (400, 422)

    fuzz(st.tuples(fields, POSITIONS, st.integers(0, 10_000)), check, examples)


@quick_and_slow
def test_any_content_type_is_answered(examples: int) -> None:
    body, content_type = multipart_body(*FORM)

    def check(header: bytes) -> None:
        status, _ = ask([body], header.decode("latin-1"))
        assert status in (200, 400, 422)

    headers = changed([content_type.encode(), b'multipart/form-data; boundary="edge"; charset=utf-16'])
    fuzz(headers.filter(lambda header: not set(header) & set(b"\0\r\n")), check, examples)  # servers refuse these


# -- labels -----------------------------------------------------------------------------------------------------------


@quick_and_slow
def test_a_label_is_cleaned_once_and_for_all_or_refused(examples: int) -> None:
    def check(label: str) -> None:
        try:
            cleaned = clean_label(label)
        except BadInput as error:
            assert_one_sentence(error)
            return
        assert clean_label(cleaned) == cleaned == cleaned.strip() == unicodedata.normalize("NFC", cleaned)
        assert 1 <= len(cleaned) <= 200 and cleaned.encode("utf-8")
        assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in cleaned)
        assert clean_label(unicodedata.normalize("NFD", label)) == cleaned

    marks = st.text(
        st.sampled_from("a\u0301\u0327 \u00a0\u200b\u202e\u2066\ufeff\u1100\u1161\u11a8\ud800\n\x85é"), max_size=12
    )
    fuzz(st.text(max_size=230) | marks, check, examples)


# -- configs ----------------------------------------------------------------------------------------------------------


@cache
def config_files() -> list[bytes]:
    return [file.read_bytes() for file in sorted(CONFIGS.rglob("*.toml"))]


def assert_config(path: Path, changes: Sequence[str] = ()) -> None:
    try:
        config = load_config(path, changes)
    except BadInput as error:
        assert_one_sentence(error)
    else:
        assert config.command
        assert [config.identity(order, method, 0) for order in config.orders for method in config.methods]


@quick_and_slow
def test_a_config_is_read_or_refused(tmp_path: Path, examples: int) -> None:
    file = tmp_path / "changed.toml"

    def check(content: bytes) -> None:
        file.write_bytes(content)
        assert_config(file)

    fuzz(changed(config_files()), check, examples)


VALUES = st.sampled_from(
    [
        *("1", "0", "-1", "1e999", "nan", "-inf", "0x7fffffffffffffff", "99999999999999999999", '""', '"siesta"'),
        *("true", "[]", "[1]", "[[]]", '[1, "a"]', "{}", "{a=1}", '{kind="siesta"}', "{rate=1}", "{rate=1, lr=1}"),
        *("{x={y={z=1}}}", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "x", "\\u0000"),
    ]
)


@cache
def config_keys() -> list[str]:
    """Every key of the configs, with its tables."""
    found: set[str] = set()

    def visit(prefix: str, table: dict[str, Any]) -> None:
        for name, value in table.items():
            found.add(prefix + name)
            if isinstance(value, dict):
                visit(f"{prefix}{name}.", value)

    for content in config_files():
        visit("", tomllib.loads(content.decode()))
    return sorted(found)


@quick_and_slow
def test_any_value_of_any_key_of_a_config_is_used_or_refused(examples: int) -> None:
    parts = st.sampled_from(["kind", "samples", "base", "network", "options", "codec_options", "rate", "lr", "x", ""])
    keys = st.sampled_from(config_keys()) | st.tuples(st.sampled_from(config_keys()), parts).map(".".join)
    change = st.tuples(keys, VALUES | st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8)).map("=".join)
    files = st.sampled_from(sorted(CONFIGS.rglob("*.toml")))
    fuzz(st.tuples(files, st.lists(change, min_size=1, max_size=3)), lambda sent: assert_config(*sent), examples)


# -- weights ----------------------------------------------------------------------------------------------------------


def small_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)), nn.Sequential(nn.Linear(4, 2)))


@cache
def weight_files() -> list[bytes]:
    """Weights of a small network, as safetensors and as torch writes them, in today's format and in its first one."""
    tensors = {f"layers.{name}": tensor for name, tensor in small_network().state_dict().items()}
    files = [save(tensors)]
    for content in (tensors, {"epoch": 3, "state_dict": tensors}):
        for is_zip in (True, False):
            data = io.BytesIO()
            torch.save(content, data, _use_new_zipfile_serialization=is_zip)
            files.append(data.getvalue())
    return files


@quick_and_slow
def test_a_file_of_weights_is_loaded_or_refused_as_a_whole(tmp_path: Path, examples: int) -> None:
    file = tmp_path / "weights"
    network = small_network()
    initial = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def check(content: bytes) -> None:
        file.write_bytes(content)
        network.load_state_dict(initial)
        try:
            load_weights(network, file, [])
        except BadInput as error:
            assert_one_sentence(error)
            assert all(torch.equal(tensor, initial[name]) for name, tensor in network.state_dict().items())
        else:
            assert all(tensor.isfinite().all() for tensor in network.state_dict().values())

    fuzz(changed(weight_files()), check, examples)


@quick_and_slow
def test_a_changed_checkpoint_of_a_training_is_never_used(tmp_path: Path, examples: int) -> None:
    file = tmp_path / "training"
    network = small_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    network[0](torch.ones(2, 3, 4, 4)).sum().backward()
    optimizer.step()
    state = {"settings": {"seed": 1}, "seconds": 1.0}
    save_run(file, network, optimizer, state, {"totals": torch.ones(3)})
    whole = file.read_bytes()
    saved = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def check(content: bytes) -> None:
        file.write_bytes(content)
        try:
            found, _ = load_run(file, network, optimizer, {"seed": 1})
        except (BadInput, Damaged) as error:
            assert_one_sentence(error)
        else:
            assert found == state
            assert all(torch.equal(tensor, saved[name]) for name, tensor in network.state_dict().items())

    fuzz(changed([whole]), check, examples)
