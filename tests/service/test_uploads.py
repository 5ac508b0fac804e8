"""Decoding of uploaded images: unusual ones are read, malformed ones are refused and do no harm."""

from __future__ import annotations

import io
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from PIL import Image

from siesta.errors import BadInput
from siesta.images import Pixels, read_image, read_opened
from siesta.service.uploads import make_thumbnail, open_upload
from tests.service.conftest import StartServer
from tests.service.malformed import decompression_bomb, malformed_files, unusual_images
from tests.service.server_process import make_image


def decode_upload(content: bytes, name: str = "a") -> Pixels:
    return read_opened(open_upload(io.BytesIO(content), name, 32, 10**6), 32, name)


@pytest.mark.parametrize("name", unusual_images())
def test_an_unusual_image_is_read_as_the_library_reads_it(name: str) -> None:
    content = unusual_images()[name]
    pixels = decode_upload(content, name)
    with Image.open(io.BytesIO(content)) as image:
        np.testing.assert_array_equal(pixels, read_image(image, 32))


def test_an_image_is_turned_upright_and_an_animation_gives_its_first_frame() -> None:
    upright = Image.fromarray(np.repeat(np.arange(40, dtype=np.uint8)[:, None] * 6, 40, 1)).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    turned = io.BytesIO()
    animation = io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(turned, "PNG", exif=exif)
    upright.save(animation, "PNG", save_all=True, append_images=[Image.new("RGB", upright.size)] * 3)
    expected = read_image(upright, 32)
    for data in (turned, animation):
        np.testing.assert_array_equal(decode_upload(data.getvalue()), expected)


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    tracemalloc.start()
    with pytest.raises(BadInput, match="a bomb has more than 50,000,000 pixels"):
        open_upload(io.BytesIO(decompression_bomb()), "a bomb", 32, 50_000_000)
    with pytest.raises(BadInput, match="more than 1,000 pixels"):
        open_upload(io.BytesIO(make_image("red")), "a", 32, 1_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


def test_a_thumbnail_is_small() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    small = make_thumbnail(pixels)
    assert len(small) < 8_000
    with Image.open(io.BytesIO(small)) as image:
        assert image.size == (96, 96)


@pytest.mark.parametrize("count", [400, pytest.param(2_000, marks=pytest.mark.slow)])
def test_malformed_uploads_are_refused_and_nothing_is_lost(start_server: StartServer, count: int) -> None:
    server = start_server(memory="4MB")
    with server.client() as client:
        before = client.learn([make_image("red", 1), make_image("blue", 1)], ["red", "blue"])
    http = httpx.Client(base_url=server.url, timeout=60)

    def send(number: int, name: str, content: bytes) -> tuple[int, list[int]]:
        files = {"image": (name, content, "image/png" if number % 3 else "text/html")}
        if number % 2:
            response = http.post("/v1/predict", files=files)
        else:
            response = http.post("/v1/learn", files=files, data={"label": "found"})
        if response.status_code != 200:
            assert response.headers["content-type"] == "application/problem+json", response.text
            assert response.json()["detail"]
        return response.status_code, response.json().get("ids", []) if response.status_code == 200 else []

    with http, ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(send, number, *file) for number, file in enumerate(malformed_files(count))]
        answers = [request.result() for request in sent]
    statuses = Counter(status for status, _ in answers)
    assert len(answers) == count and set(statuses) == {200, 422}, statuses
    assert min(statuses.values()) > count // 20, "some can be read, most cannot"
    stored = before + [sample for _, ids in answers for sample in ids]
    with server.client() as client:
        assert client.info().samples.stored == len(stored) == len(set(stored))
        assert client.predict(make_image("blue", 7)).label in ("blue", "found")
    assert "Traceback" not in server.output()
    assert server.stop() == 0
