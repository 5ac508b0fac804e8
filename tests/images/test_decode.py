"""Decoding in bounded memory: estimates, limits, one large image at a time, and the same pixels as in one piece."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from PIL import Image, ImageOps

from siesta.errors import BadInput
from siesta.images.decode import MAX_BYTES, check_limits, decoded, decoding_bytes, is_large
from siesta.images.read import read_image, read_opened
from tests.images.pictures import SIDE, encoded, large_files, tiny_webp

PEAK = """
import json, re, sys
from siesta.errors import BadInput
from siesta.images import read_image

def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def peak(file):
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")  # resets VmHWM
    before = memory("VmRSS")
    try:
        read_image(file, 224)
        outcome = ""
    except BadInput as error:
        outcome = str(error)
    return memory("VmHWM") - before, outcome

for file in sys.argv[1:2] + sys.argv[1:]:  # the first one twice, which loads Pillow's decoders
    print(json.dumps([file, *peak(file)]))
"""


def noise(height: int, width: int, channels: int = 3) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8))


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "I;16"])
def test_bands_give_the_same_pixels_as_the_whole_image(mode: str, orientation: int) -> None:
    image = Image.new("I;16", (1300, 1700), 12_345) if mode == "I;16" else noise(1700, 1300, 4).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(image, "PNG", exif=exif, compress_level=1)
    upright = ImageOps.exif_transpose(opened(content))
    if mode == "I;16":
        upright = Image.new("L", upright.size, 12_345 >> 8)
    upright = upright.convert("RGBA")
    whole = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")
    with decoded(opened(content), "a") as picture:
        assert (picture.width, picture.height) == upright.size
        found = picture.resize(300, 200, (40, 240))
    wanted = whole.resize((300, 200), Image.Resampling.BICUBIC).crop((40, 0, 240, 200))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_a_jpeg_of_ordinary_size_is_decoded_in_full() -> None:
    content = encoded(noise(100, 160).resize((5000, 4000)), "JPEG")
    wanted = opened(content).resize((round(5000 * 256 / 4000), 256), Image.Resampling.BICUBIC)
    left = (wanted.width - 224) // 2
    found = read_opened(opened(content), 224, "a")
    np.testing.assert_array_equal(found, np.asarray(wanted.crop((left, 16, left + 224, 240))))


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_larger_jpeg_is_decoded_at_a_reduced_size_and_looks_the_same(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(noise(20, 30).resize((6400, 4000), Image.Resampling.BICUBIC), "JPEG", exif=exif)
    (tmp_path / "a.jpg").write_bytes(content)
    image = opened(content)
    assert decoding_bytes(image, 224) == 6400 * 4000 * 4 // 64
    with decoded(image, "a", 224) as picture:
        assert (picture.width, picture.height) == ((6400, 4000) if orientation == 1 else (4000, 6400))
    assert image.size == (800, 500)
    given = opened(content)
    full = read_image(given, 224).astype(int)
    assert given.size == (6400, 4000), "an image of the caller is not reduced"
    assert np.abs(read_image(tmp_path / "a.jpg", 224) - full).mean() < 1


@pytest.mark.parametrize(
    ("format_name", "options", "bytes_per_pixel"),
    [
        ("PNG", {}, 4),
        ("BMP", {}, 4),
        ("GIF", {}, 3),
        ("TIFF", {}, 8),
        ("WEBP", {}, 16),
        ("JPEG", {}, 4),
        ("JPEG", {"progressive": True, "subsampling": 0}, 4 + 6),
        ("JPEG", {"progressive": True, "subsampling": 2}, 4 + 3),
        ("JPEG2000", {}, 24),
    ],
)
def test_the_estimate_depends_on_format_and_mode(
    format_name: str, options: dict[str, object], bytes_per_pixel: int
) -> None:
    image = opened(encoded(noise(30, 40), format_name, **options))
    assert decoding_bytes(image) == 1200 * bytes_per_pixel
    if format_name in ("PNG", "JPEG", "TIFF", "GIF"):
        image.load()
        assert decoding_bytes(image) == 1200 * (1 if image.mode == "P" else 4), "it is decoded already"


def test_a_jpeg_of_several_scans_that_is_not_progressive_counts_its_coefficients() -> None:
    content = bytearray(encoded(noise(30, 40), "JPEG", subsampling=0))
    scan = content.index(b"\xff\xda\x00\x0c\x03")
    content[scan : scan + 14] = b"\xff\xda\x00\x08\x01" + bytes(content[scan + 5 : scan + 7]) + b"\x00\x3f\x00"
    assert decoding_bytes(opened(bytes(content))) == 1200 * (4 + 6)


def test_images_in_memory_are_counted_as_they_are_stored() -> None:
    for mode, expected in {"1": 1, "L": 1, "P": 1, "I;16": 2, "LA": 4, "RGB": 4, "F": 4}.items():
        assert decoding_bytes(Image.new(mode, (30, 40))) == 1200 * expected


def test_too_much_memory_is_refused_before_anything_is_decoded(tmp_path: Path) -> None:
    content = tiny_webp(SIDE, SIDE)
    assert len(content) < 40
    (tmp_path / "a.webp").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.webp with its 7000 x 7000 pixels takes 784 MB of memory to decode, more"):
        read_image(tmp_path / "a.webp", 32)
    with pytest.raises(BadInput, match="b with its 7000 x 7000 pixels takes 784 MB"):
        check_limits(opened(content), "b")
    with pytest.raises(BadInput, match="c has more than 1,000 pixels"):
        check_limits(opened(tiny_webp(40, 30)), "c", max_pixels=1_000)
    check_limits(opened(tiny_webp(5000, 5000)), "d")


def test_one_large_image_is_decoded_at_a_time_and_small_ones_meanwhile() -> None:
    large = [Image.new("RGB", (5100, 5000)) for _ in range(2)]  # zeros, which take no memory until they are read
    assert all(map(is_large, large)) and not is_large(Image.new("RGB", (5000, 5000)))
    second = Event()

    def decode_second() -> None:
        with decoded(large[1], "second"):
            second.set()

    thread = Thread(target=decode_second)
    with decoded(large[0], "first"):
        thread.start()
        assert read_image(noise(40, 50), 32).shape == (32, 32, 3)
        assert not second.wait(0.1)
    thread.join()
    assert second.is_set()


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs the peak memory of Linux")
def test_no_image_takes_more_memory_than_its_estimate_and_none_more_than_the_limit(tmp_path: Path) -> None:
    files = large_files(tmp_path)
    result = subprocess.run([sys.executable, "-c", PEAK, *map(str, files)], capture_output=True, text=True, check=True)
    margin = 40_000_000  # the bands, and what Python allocates
    for line in result.stdout.splitlines()[1:]:
        file, peak, refusal = json.loads(line)
        with Image.open(file) as image:
            estimate = decoding_bytes(image, 224)
        assert bool(refusal) == (estimate > MAX_BYTES), refusal
        assert peak < (0 if refusal else estimate) + margin, file
