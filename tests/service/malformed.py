"""Image files for the tests of uploads: unusual but valid ones, malformed ones, and random changes of both."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

__all__ = ["decompression_bomb", "malformed_files", "unusual_images"]

PNG = b"\x89PNG\r\n\x1a\n"


def encode(image: Image.Image, format_name: str, **options: object) -> bytes:
    data = io.BytesIO()
    image.save(data, format_name, **options)
    return data.getvalue()


def noise(*shape: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8))


def unusual_images() -> dict[str, bytes]:
    """Return readable images that few cameras make, by file name."""
    plain, frames = noise(30, 40, 3), [noise(20, 20 + n, 3).resize((24, 24)) for n in range(5)]
    deep = Image.fromarray(np.arange(900, dtype=np.uint16).reshape(30, 30) * 70)
    images = {
        "cmyk.jpg": encode(plain.convert("CMYK"), "JPEG"),
        "gray.jpg": encode(plain.convert("L"), "JPEG"),
        "progressive.jpg": encode(plain, "JPEG", progressive=True, quality=95),
        "deep.png": encode(deep, "PNG"),
        "palette.png": encode(plain.convert("P"), "PNG", transparency=3),
        "bits.png": encode(plain.convert("1"), "PNG"),
        "alpha.png": encode(noise(20, 20, 4), "PNG"),
        "animated.png": encode(frames[0], "PNG", save_all=True, append_images=frames[1:]),
        "animated.gif": encode(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=20),
        "animated.webp": encode(frames[0], "WEBP", save_all=True, append_images=frames[1:]),
        "lossless.webp": encode(plain, "WEBP", lossless=True),
        "one.png": encode(noise(1, 1, 3), "PNG"),
        "text.png": PNG + chunk(b"IHDR", header(2, 2)) + chunk(b"tEXt", b"a\0<b>") + data(2, 2) + chunk(b"IEND", b""),
    }
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        images[f"turned{orientation}.jpg"] = encode(plain, "JPEG", exif=exif)
    return images


def header(width: int, height: int, depth: int = 8) -> bytes:
    return struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def data(width: int, height: int) -> bytes:
    return chunk(b"IDAT", zlib.compress(bytes(height * (1 + 3 * width))))


def decompression_bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """Return a small PNG whose header declares many pixels."""
    return (
        PNG + chunk(b"IHDR", header(width, height)) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")
    )


def bad_files() -> dict[str, bytes]:
    """Return files that are no images, or of refused formats, or larger than they seem, by file name."""
    plain = noise(20, 20, 3)
    exif = b"\xff\xe1" + struct.pack(">H", 30) + b"Exif\0\0" + b"\xff" * 22
    jpeg = encode(plain, "JPEG")
    return {
        "empty.jpg": b"",
        "zeros.png": bytes(5000),
        "page.html": b"<html><script>alert(1)</script></html>",
        "vector.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "sheet.bmp": encode(plain, "BMP"),
        "scan.tiff": encode(plain, "TIFF"),
        "script.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        "archive.zip": b"PK\x03\x04" + bytes(100),
        "bomb.png": decompression_bomb(),
        "endless.png": decompression_bomb(2**31 - 1, 2**31 - 1),
        "thin.png": PNG + chunk(b"IHDR", header(1, 40_000)) + data(1, 40_000) + chunk(b"IEND", b""),
        "flat.png": PNG + chunk(b"IHDR", header(0, 0)) + chunk(b"IEND", b""),
        "text-bomb.png": PNG
        + chunk(b"IHDR", header(2, 2))
        + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(50_000_000)))
        + data(2, 2)
        + chunk(b"IEND", b""),
        "profile-bomb.png": PNG
        + chunk(b"IHDR", header(2, 2))
        + chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(50_000_000)))
        + data(2, 2)
        + chunk(b"IEND", b""),
        "huge.gif": b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + b"\xf0\0\0" + bytes(6) + b";",
        "huge.webp": b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xfe\x3f\0\xfe\x3f\0" + bytes(10),
        "odd-exif.jpg": jpeg[:2] + exif + jpeg[2:],
        "name\n\0../../etc/passwd": b"x",
        '<img src=x onerror="alert(1)">.png': b"y",
    }


def malformed_files(count: int) -> Iterator[tuple[str, bytes]]:
    """Yield so many files: all of the above, then copies of them with random bytes changed, cut or inserted."""
    originals = {**unusual_images(), **bad_files()}
    yield from originals.items()
    rng = np.random.default_rng(7)
    names = [name for name, content in originals.items() if 0 < len(content) < 20_000]
    for _ in range(count - len(originals)):
        name = names[rng.integers(len(names))]
        content = bytearray(originals[name])
        for _ in range(rng.integers(1, 4)):
            position = int(rng.integers(len(content) or 1))
            change = rng.integers(5)
            if change == 0:
                del content[position:]
            elif change == 1:
                content[position : position + 1] = rng.bytes(1)
            elif change == 2:
                content[position : position + 8] = rng.bytes(int(rng.integers(1, 16)))
            elif change == 3:
                content += originals[names[rng.integers(len(names))]][:position]
            else:
                content[:0] = originals[names[rng.integers(len(names))]][:12]
        yield name, bytes(content)
