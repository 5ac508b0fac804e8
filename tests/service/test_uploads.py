"""Uploads that nobody vouches for: never an error of ours, never anything lost."""

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
from siesta.images import read_image
from siesta.service.uploads import read_upload, thumbnail
from tests.service.conftest import Serve
from tests.service.malformed import bomb, malformed, odd_pictures
from tests.service.running import picture

MANY = 2_000


@pytest.mark.parametrize("name", odd_pictures())
def test_odd_pictures_are_read_as_the_library_reads_them(name: str) -> None:
    content = odd_pictures()[name]
    pixels = read_upload(io.BytesIO(content), name, 32, 10**6)
    with Image.open(io.BytesIO(content)) as image:
        np.testing.assert_array_equal(pixels, read_image(image, 32))


def test_they_are_turned_upright_and_of_an_animation_the_first_frame_counts() -> None:
    upright = Image.fromarray(np.repeat(np.arange(40, dtype=np.uint8)[:, None] * 6, 40, 1)).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    turned, film = io.BytesIO(), io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(turned, "PNG", exif=exif)
    upright.save(film, "PNG", save_all=True, append_images=[Image.new("RGB", upright.size)] * 3)
    expected = read_image(upright, 32)
    for data in (turned, film):
        data.seek(0)
        np.testing.assert_array_equal(read_upload(data, "a", 32, 10**6), expected)


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    tracemalloc.start()
    with pytest.raises(BadInput, match="a bomb has more than 50,000,000 pixels"):
        read_upload(io.BytesIO(bomb()), "a bomb", 32, 50_000_000)
    with pytest.raises(BadInput, match="more than 1,000 pixels"):
        read_upload(io.BytesIO(picture("red")), "a", 32, 1_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10**7


def test_a_thumbnail_is_small() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    small = thumbnail(pixels)
    assert len(small) < 8_000
    with Image.open(io.BytesIO(small)) as image:
        assert image.size == (96, 96)


def test_two_thousand_malformed_uploads_cost_nothing(serve: Serve) -> None:
    running = serve(memory="4MB")
    with running.client() as client:
        before = client.learn([picture("red", 1), picture("blue", 1)], ["red", "blue"])
    http = httpx.Client(base_url=running.url, timeout=60)

    def send(numbered: tuple[int, tuple[str, bytes]]) -> tuple[int, list[int]]:
        number, (name, content) = numbered
        files = {"image": (name, content, "image/png" if number % 3 else "text/html")}
        if number % 2:
            answer = http.post("/v1/predict", files=files)
        else:
            answer = http.post("/v1/learn", files=files, data={"label": "found"})
        if answer.status_code != 200:
            assert answer.headers["content-type"] == "application/problem+json", answer.text
            assert answer.json()["detail"]
        return answer.status_code, answer.json().get("ids", []) if answer.status_code == 200 else []

    with http, ThreadPoolExecutor(8) as senders:
        answers = list(senders.map(send, enumerate(malformed(MANY))))
    statuses = Counter(status for status, _ in answers)
    assert len(answers) == MANY and set(statuses) == {200, 422}, statuses
    assert min(statuses.values()) > 100, "some can be read, most cannot"
    stored = before + [sample for _, ids in answers for sample in ids]
    with running.client() as client:
        assert client.info().samples.stored == len(stored) == len(set(stored))
        assert client.predict(picture("blue", 7)).label in ("blue", "found")
    assert "Traceback" not in running.said()
    assert running.end() == 0
