"""Codes of a data set, computed once and cached on disk: the output of the frozen bottom and the codec for each image.

All methods learn from codes, so the bottom processes each image once for any number of runs. The cache key is a hash of
the images, the bottom, the codec and the image size; the files are safe to delete. The time that encoding takes is
stored as well, so that runs can include it in their costs.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes
from siesta.data import Split
from siesta.errors import BadInput, Busy
from siesta.files import Lock, cache_folder, disk_errors, replace_file
from siesta.images import Pixels, read_image
from siesta.pipeline import Pipeline

__all__ = ["CachedCodes", "OnEncoded", "cached_codes"]

OnEncoded = Callable[[int, int], None]
"""Called with the number of encoded images and their total."""

_BATCH_SIZE = 32
_BATCHES_PER_SYNC = 32
_POLL_SECONDS = 0.5  # while another process encodes the same images
_VERSION = 1  # part of the key; increase it if codes cached before must not be used


@dataclass(frozen=True)
class CachedCodes:
    """Codes of a split, (N, code_bytes), and the seconds that bottom and codec take per image."""

    codes: Codes
    seconds: float


def cached_codes(split: Split, pipeline: Pipeline, on_encoded: OnEncoded | None = None) -> CachedCodes:
    """Return the codes of a split, computing those that are not cached; other processes wait for the one that does."""
    folder = cache_folder("codes") / _cache_key(split, pipeline)
    count = len(split.labels)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while _read_summary(folder, count) is None:
            try:
                lock = Lock(folder / "lock", lambda pid: f"{folder} is being written by process {pid}")
            except Busy:
                time.sleep(_POLL_SECONDS)
                continue
            try:
                if _read_summary(folder, count) is None:
                    _encode_split(folder, split, pipeline, on_encoded)
            finally:
                lock.release()
        seconds, code_bytes = _read_summary(folder, count) or (0.0, 0)
    codes = np.memmap(folder / "codes", dtype=np.uint8, mode="r", shape=(count, code_bytes))
    return CachedCodes(codes, seconds)


def _read_summary(folder: Path, count: int) -> tuple[float, int] | None:
    """Return seconds and bytes per image if the cache is complete; None if anything is missing or damaged."""
    try:
        summary = json.loads((folder / "done.json").read_text("utf-8"))
        seconds = float(summary["seconds"])
        code_bytes = int(summary["code_bytes"])
        complete = (folder / "codes").stat().st_size == count * code_bytes > 0
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (seconds, code_bytes) if complete else None


def _encode_split(folder: Path, split: Split, pipeline: Pipeline, on_encoded: OnEncoded | None) -> None:
    """Encode all images of a split, resuming at the last synced batch."""
    total = len(split.labels)
    progress = _read_progress(folder)
    with (folder / "codes").open("r+b" if progress["done"] else "wb") as file:
        file.truncate(int(progress["done"]) * int(progress["code_bytes"]))
        file.seek(0, os.SEEK_END)
        batches = _read_batches(split, int(progress["done"]), pipeline.image_size)
        for number, (images, end) in enumerate(batches, start=1):
            start = time.perf_counter()
            codes = pipeline.encode(images)
            progress["seconds"] += time.perf_counter() - start
            file.write(codes.tobytes())
            progress["done"] = end
            progress["code_bytes"] = codes.shape[1]
            if number % _BATCHES_PER_SYNC == 0:
                os.fsync(file.fileno())
                replace_file(folder / "progress.json", json.dumps(progress))
            if on_encoded:
                on_encoded(end, total)
        os.fsync(file.fileno())
    seconds = progress["seconds"] / max(total, 1)
    summary = {"code_bytes": progress["code_bytes"], "seconds": seconds, "pictures": total}
    replace_file(folder / "done.json", json.dumps(summary))


def _read_progress(folder: Path) -> dict[str, float]:
    """Return how much is encoded and synced; nothing if the file is missing or inconsistent."""
    try:
        stored = json.loads((folder / "progress.json").read_text("utf-8"))
        progress = {name: convert(stored[name]) for name, convert in _PROGRESS_TYPES.items()}
        if (folder / "codes").stat().st_size >= progress["done"] * progress["code_bytes"] > 0:
            return progress
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"done": 0, "seconds": 0.0, "code_bytes": 0}


_PROGRESS_TYPES: Mapping[str, Callable[[Any], float]] = {"done": int, "seconds": float, "code_bytes": int}


def _read_batches(split: Split, start: int, image_size: int) -> Iterator[tuple[list[Pixels], int]]:
    """Yield batches of images from index `start` on, each with its end; the next one is read in the background."""

    def read(first: int) -> list[Pixels]:
        end = min(first + _BATCH_SIZE, len(split.labels))
        return [_read_picture(split, index, image_size) for index in range(first, end)]

    with ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(read, start)
        for first in range(start, len(split.labels), _BATCH_SIZE):
            images = upcoming.result()
            upcoming = pool.submit(read, first + _BATCH_SIZE)
            yield images, first + len(images)


def _read_picture(split: Split, index: int, image_size: int) -> Pixels:
    try:
        return read_image(split.pictures[index], image_size)
    except BadInput as error:
        raise BadInput(f"{error}; an experiment uses every image") from error


def _cache_key(split: Split, pipeline: Pipeline) -> str:
    """Return the hash of everything that the codes depend on."""
    digest = hashlib.sha256(f"{_VERSION} {pipeline.image_size} {split.fingerprint}".encode())
    for tensors in (pipeline.network.bottom, pipeline.codec.state()):
        digest.update(_hash_tensors(tensors))
    return digest.hexdigest()[:32]


def _hash_tensors(tensors: Mapping[str, npt.NDArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].tobytes())
    return digest.digest()
