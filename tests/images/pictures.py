"""Image files of many pixels and few bytes."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 7000


def tiny_webp(width: int, height: int) -> bytes:
    """Return a lossless WebP of one colour with alpha: every code of it has one symbol, so no pixel takes a bit."""
    bits, position = 0x2F, 8  # the signature
    for value, length in [(width - 1, 14), (height - 1, 14), (1, 1), (0, 3), (0, 1), (0, 1), (0, 1)]:
        bits |= value << position
        position += length
    for symbol in (10, 200, 30, 128):  # green, red, blue and alpha: a simple code with one symbol of 8 bits
        bits |= (0b101 | symbol << 3) << position
        position += 11
    bits |= 0b0001 << position  # distances: a simple code with one symbol of 1 bit
    position += 4
    data = bits.to_bytes(-(-position // 8), "little")
    data += bytes(len(data) % 2)
    chunk = b"VP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def encoded(image: Image.Image, format_name: str, **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, format_name, **options)
    return data.getvalue()


def large_files(folder: Path) -> list[Path]:
    """Write files of 49 million pixels, each of another format or mode."""
    plain = Image.new("RGBA", (SIDE, SIDE), (200, 10, 30, 128))
    rgb = plain.convert("RGB")
    deep = Image.fromarray(np.full((SIDE, SIDE), 40_000, np.uint16))
    frames = [Image.new("P", (SIDE, SIDE), colour) for colour in (1, 2)]
    contents = {
        "rgba.webp": tiny_webp(SIDE, SIDE),
        "animated.webp": encoded(rgb, "WEBP", save_all=True, append_images=[frames[0]], lossless=True, method=0),
        "rgb.png": encoded(rgb, "PNG", compress_level=1),
        "rgba.png": encoded(plain, "PNG", compress_level=1),
        "deep.png": encoded(deep, "PNG", compress_level=1),
        "deep.tif": encoded(deep, "TIFF", compression="tiff_lzw"),
        "animated.gif": encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "rgb.jpg": encoded(rgb, "JPEG"),
        "progressive.jpg": encoded(rgb, "JPEG", progressive=True, subsampling=0),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]
