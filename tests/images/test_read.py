"""Pictures in any form become the same checked pixels."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from siesta.contracts import Normalization
from siesta.errors import BadInput
from siesta.images import normalize, read_image, read_opened

SIZE = 32
Array = npt.NDArray[Any]


def photo(height: int = 48, width: int = 60, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Smooth colour with a bright corner, so that turning and mirroring show."""
    rows, columns = np.mgrid[0:height, 0:width]
    picture = np.stack([rows * 255 // height, columns * 255 // width, np.full_like(rows, 40 + seed)], axis=2)
    picture[: height // 4, : width // 4] = 250
    return picture.astype(np.uint8)


def bicubic(length: int, wanted: int) -> Array:
    """Matrix (wanted, length) of a bicubic resize that widens its kernel when it shrinks."""
    scale = length / wanted
    widen = max(scale, 1.0)
    centres = (np.arange(wanted) + 0.5) * scale
    x = np.abs((np.arange(length) + 0.5 - centres[:, None]) / widen)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    kernel = np.where(x < 1, near, np.where(x < 2, far, 0.0))
    matrix: Array = kernel / kernel.sum(axis=1, keepdims=True)
    return matrix


def expected(pixels: Array, size: int) -> Array:
    """Short side to size / 0.875, bicubic, centre crop; in NumPy."""
    height, width = pixels.shape[:2]
    ratio = size / 0.875 / min(height, width)
    high, wide = round(height * ratio), round(width * ratio)
    top, left = (high - size) // 2, (wide - size) // 2
    vertical = bicubic(height, high)[top : top + size]
    horizontal = bicubic(width, wide)[left : left + size]
    across = np.round(np.einsum("xw,hwc->hxc", horizontal, pixels.astype(float))).clip(0, 255)  # kept as bytes
    resized: Array = np.einsum("yh,hxc->yxc", vertical, across).clip(0, 255)
    return resized


@pytest.mark.parametrize(("height", "width"), [(48, 60), (60, 48), (300, 200), (10, 14), (37, 37), (33, 90), (3, 5)])
@pytest.mark.parametrize("size", [32, 45])
def test_resize_and_crop_equal_a_numpy_implementation(height: int, width: int, size: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    for pixels in (photo(height, width), noise):
        found = read_image(pixels, size)
        assert found.shape == (size, size, 3)
        assert found.dtype == np.uint8
        np.testing.assert_allclose(found, expected(pixels, size), atol=2)


def test_paths_pil_images_and_arrays_give_the_same_pixels(tmp_path: Path) -> None:
    pixels = photo()
    Image.fromarray(pixels).save(tmp_path / "p.png")
    wanted = read_image(pixels, SIZE)
    forms: list[Any] = [
        tmp_path / "p.png",
        str(tmp_path / "p.png"),
        Image.fromarray(pixels),
        pixels[::-1][::-1],
        pixels / 255,
        (pixels / 255).astype(np.float32),
        np.asfortranarray(pixels),
    ]
    for form in forms:
        np.testing.assert_array_equal(read_image(form, SIZE), wanted)


def test_grey_arrays_can_have_two_or_three_axes() -> None:
    grey = photo()[:, :, 0]
    wanted = read_image(np.stack([grey] * 3, axis=2), SIZE)
    for form in (grey, grey[:, :, None], grey / 255):
        np.testing.assert_array_equal(read_image(form, SIZE), wanted)


def test_an_array_of_the_exact_size_is_returned_unchanged() -> None:
    exact = photo(SIZE, SIZE)
    assert read_image(exact, SIZE) is exact
    np.testing.assert_array_equal(read_image(read_image(photo(), SIZE), SIZE), read_image(photo(), SIZE))
    assert not np.array_equal(read_image(Image.fromarray(exact), SIZE), exact)  # a picture is cropped all the same


def test_the_input_is_never_modified() -> None:
    array, image = photo(), Image.fromarray(photo())
    read_image(array, SIZE)
    read_image(image, SIZE)
    np.testing.assert_array_equal(array, photo())
    np.testing.assert_array_equal(np.asarray(image), photo())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(tmp_path: Path, orientation: int) -> None:
    upright = photo()
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    image = Image.fromarray(np.ascontiguousarray(stored))
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(tmp_path / "p.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "p.png", SIZE), read_image(upright, SIZE))


def test_transparent_parts_become_white(tmp_path: Path) -> None:
    pixels = np.dstack([photo(), np.zeros((48, 60), np.uint8)])
    Image.fromarray(pixels).save(tmp_path / "p.png")
    for form in (tmp_path / "p.png", Image.fromarray(pixels)):
        assert (read_image(form, SIZE) == 255).all()
    half = np.dstack([np.zeros((48, 60, 3), np.uint8), np.full((48, 60), 128, np.uint8)])
    assert abs(int(read_image(Image.fromarray(half), SIZE).mean()) - 127) <= 1


def test_an_array_with_alpha_is_blended_with_white() -> None:
    pixels = np.dstack([photo(), np.linspace(0, 255, 48 * 60).astype(np.uint8).reshape(48, 60)])
    wanted = read_image(Image.fromarray(pixels), SIZE)
    np.testing.assert_array_equal(read_image(pixels, SIZE), wanted)
    np.testing.assert_array_equal(read_image(pixels / 255, SIZE), wanted)


def test_palette_images_with_and_without_a_transparent_colour(tmp_path: Path) -> None:
    palette = Image.fromarray(photo()).quantize(16)
    palette.save(tmp_path / "p.png")
    wanted = read_image(palette.convert("RGB"), SIZE)
    np.testing.assert_array_equal(read_image(tmp_path / "p.png", SIZE), wanted)
    one = Image.new("P", (48, 60), 3)
    one.putpalette(list(range(48)))
    one.save(tmp_path / "t.png", transparency=3)
    assert (read_image(tmp_path / "t.png", SIZE) == 255).all()


def test_the_first_frame_of_a_gif_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "p.gif", save_all=True, append_images=frames[1:])
    assert (read_image(tmp_path / "p.gif", SIZE) == [255, 0, 0]).all()


def test_sixteen_bit_images_become_eight_bit(tmp_path: Path) -> None:
    deep = (photo()[:, :, 0].astype(np.uint16) << 8) + 77
    Image.fromarray(deep).save(tmp_path / "p.png")
    Image.fromarray(deep).save(tmp_path / "p.tif")
    wanted = read_image(photo()[:, :, 0], SIZE)
    for name in ("p.png", "p.tif"):
        np.testing.assert_array_equal(read_image(tmp_path / name, SIZE), wanted)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "I", "F", "I;16"])
def test_every_pillow_mode_is_read(mode: str) -> None:
    found = read_image(Image.new(mode, (50, 40)), SIZE)
    assert found.shape == (SIZE, SIZE, 3)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".webp", ".tif", ".ppm"])
def test_common_formats_are_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"p{suffix}"
    Image.fromarray(photo()).save(file)
    difference = np.abs(read_image(file, SIZE).astype(int) - read_image(photo(), SIZE))
    assert difference.mean() < 6


def test_cmyk_jpegs_are_read(tmp_path: Path) -> None:
    Image.fromarray(photo()).convert("CMYK").save(tmp_path / "p.jpg")
    assert np.abs(read_image(tmp_path / "p.jpg", SIZE).astype(int) - read_image(photo(), SIZE)).mean() < 12


def broken_files(folder: Path) -> list[Path]:
    jpeg, png = BytesIO(), BytesIO()
    Image.fromarray(photo(200, 200)).save(jpeg, "JPEG")
    Image.fromarray(photo(200, 200)).save(png, "PNG")
    contents = {
        "truncated.jpg": jpeg.getvalue()[: len(jpeg.getvalue()) // 2],
        "truncated.png": png.getvalue()[: len(png.getvalue()) // 2],
        "header.png": png.getvalue()[:20],
        "text.jpg": b"not a picture\n",
        "empty.png": b"",
        "zeros.bmp": bytes(1000),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in contents]


def test_broken_files_are_refused_by_name(tmp_path: Path) -> None:
    for file in broken_files(tmp_path):
        with pytest.raises(BadInput, match=file.name):
            read_image(file, SIZE)


@pytest.mark.parametrize("error", [RuntimeError, SyntaxError, IndexError])
def test_every_error_of_pillow_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type) -> None:
    def fail(_: object) -> None:  # as for an AVIF without image items
        raise error("Missing or empty image item")

    monkeypatch.setattr(Image, "open", fail)
    (tmp_path / "p.avif").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"p\.avif is not a readable image"):
        read_image(tmp_path / "p.avif", SIZE)


def test_a_broken_file_is_refused_as_an_open_pil_image_too(tmp_path: Path) -> None:
    file = broken_files(tmp_path)[0]
    with Image.open(file) as image, pytest.raises(BadInput):
        read_image(image, SIZE)


def declared(width: int, height: int) -> bytes:
    """A PNG of a hundred bytes that says it is huge."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_001, 12_000, 14_000, 50_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path: Path, side: int) -> None:
    file = tmp_path / "bomb.png"
    file.write_bytes(declared(side, side))
    with pytest.raises(BadInput, match=r"bomb\.png has more than 100,000,000 pixels"):
        read_image(file, SIZE)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.png", tmp_path):
        with pytest.raises(BadInput, match=path.name):
            read_image(path, SIZE)
    for impossible in ("x" * 300, "a\0b", ""):
        with pytest.raises(BadInput):
            read_image(impossible, SIZE)


def test_file_names_can_have_any_character(tmp_path: Path) -> None:
    for name in ("ä ö.png", "100%.png", "[red].png", "no suffix"):
        Image.fromarray(photo()).save(tmp_path / name, "PNG")
        assert read_image(tmp_path / name, SIZE).shape == (SIZE, SIZE, 3)


@pytest.mark.parametrize(
    "shape", [(10,), (10, 10, 2), (10, 10, 5), (3, 10, 10), (1, 10, 10, 3), (0, 10, 3), (10, 0, 3), (10, 10, 0), ()]
)
def test_arrays_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="array"):
        read_image(np.zeros(shape, np.uint8), SIZE)


@pytest.mark.parametrize("kind", [bool, np.int32, np.uint16, np.int8, complex, object, "U3"])
def test_arrays_of_other_types_are_refused(kind: Any) -> None:
    with pytest.raises(BadInput, match="uint8 or floats"):
        read_image(np.zeros((10, 10, 3)).astype(kind), SIZE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.01, 1.01, 255.0])
def test_floats_outside_0_to_1_are_refused(value: float) -> None:
    array = np.full((10, 10, 3), 0.5)
    array[3, 4, 1] = value
    with pytest.raises(BadInput, match=r"0\.\.1"):
        read_image(array, SIZE)


@pytest.mark.parametrize("thing", [None, 3, b"photo.jpg", [[0, 1]], torch.zeros(3, 10, 10)])
def test_other_objects_are_refused(thing: Any) -> None:
    with pytest.raises(BadInput, match=type(thing).__name__):
        read_image(thing, SIZE)


def test_thin_images_are_read_unless_extremely_thin(tmp_path: Path) -> None:
    for size in ((1, 1), (1, 300), (300, 1)):
        assert read_image(Image.new("RGB", size, "red"), SIZE).shape == (SIZE, SIZE, 3)
    Image.new("1", (1, 200_000)).save(tmp_path / "thread.png")
    with pytest.raises(BadInput, match=r"thread\.png"):  # a list of skipped files has to name them
        read_image(tmp_path / "thread.png", 224)


def test_an_image_without_pixels_is_refused() -> None:
    for mode in ("RGB", "RGBA", "L", "P"):
        for size in ((0, 0), (0, 5), (5, 0)):
            with pytest.raises(BadInput):
                read_image(Image.new(mode, size), SIZE)


def test_normalization_is_per_channel() -> None:
    pixels = [photo(SIZE, SIZE, seed) for seed in range(2)]
    found = normalize(pixels, Normalization(mean=(1.0, 2.0, 3.0), std=(4.0, 5.0, 6.0)))
    wanted = (np.stack(pixels).astype(np.float32) - [1, 2, 3]) / [4, 5, 6]
    assert found.shape == (2, 3, SIZE, SIZE)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, wanted.transpose(0, 3, 1, 2), rtol=1e-6)


def test_an_opened_image_is_closed_once_it_was_read() -> None:
    data = BytesIO()
    Image.fromarray(photo()).save(data, "PNG")
    image = Image.open(data)
    assert np.array_equal(read_opened(image, SIZE, "a"), read_image(photo(), SIZE))
    with pytest.raises(ValueError, match="closed image"):
        image.getpixel((0, 0))
