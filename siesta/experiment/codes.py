"""Codes of a data set, computed once and kept on disk: what the frozen bottom and the codec make of every picture.

All methods learn from codes, so a bottom sees each picture once, however many runs there are. The key is made of the
pictures, the bottom, the codec and the image size; the files are safe to delete. How long coding a picture took is
kept beside them, so that a run can count it in.
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

import numpy as np
from torch import Tensor

from siesta.contracts import Codes
from siesta.data import Split
from siesta.errors import BadInput, Busy
from siesta.images import Pixels, read_image
from siesta.pipeline import Pipeline
from siesta.store.files import Lock, disk_errors

__all__ = ["Coded", "OnCoded", "cache_folder", "coded"]

OnCoded = Callable[[int, int], None]
"""Called with how many pictures are coded, and of how many."""

_AT_ONCE = 32
_SAVED_EVERY = 32  # groups
_WAIT = 0.5  # seconds between looks at what another process codes
_VERSION = 1  # goes up when codes made before must not be used


@dataclass(frozen=True)
class Coded:
    """Codes of a split, (N, code_bytes), and the seconds that bottom and codec take for one picture."""

    codes: Codes
    seconds: float


def cache_folder() -> Path:
    """Where codes are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "siesta" / "codes"


def coded(split: Split, pipeline: Pipeline, on_coded: OnCoded | None = None) -> Coded:
    """The codes of a split's pictures: from the cache, or computed into it, by one process while others wait for it."""
    folder = cache_folder() / _key(split, pipeline)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while _facts(folder, len(split.labels)) is None:
            try:
                lock = Lock(folder / "lock", lambda pid: f"{folder} is being made by process {pid}")
            except Busy:  # another process is at it
                time.sleep(_WAIT)
                continue
            try:
                if _facts(folder, len(split.labels)) is None:
                    _fill(folder, split, pipeline, on_coded)
            finally:
                lock.release()
        seconds, code_bytes = _facts(folder, len(split.labels)) or (0.0, 0)
    shape = (len(split.labels), code_bytes)
    return Coded(np.memmap(folder / "codes", dtype=np.uint8, mode="r", shape=shape), seconds)


def _facts(folder: Path, pictures: int) -> tuple[float, int] | None:
    """Seconds and bytes of a picture, if all are coded; None where something is missing or broken."""
    try:
        facts = json.loads((folder / "done.json").read_text("utf-8"))
        seconds, code_bytes = float(facts["seconds"]), int(facts["code_bytes"])
        whole = (folder / "codes").stat().st_size == pictures * code_bytes > 0
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (seconds, code_bytes) if whole else None


def _fill(folder: Path, split: Split, pipeline: Pipeline, on_coded: OnCoded | None) -> None:
    """Codes all pictures of a split; `progress.json` says how many are safe on disk."""
    total, state = len(split.labels), _progress(folder)
    with (folder / "codes").open("r+b" if state["done"] else "wb") as file:
        width = int(state["code_bytes"])
        file.truncate(int(state["done"]) * width)
        file.seek(0, os.SEEK_END)
        for group, (pictures, end) in enumerate(_read(split, int(state["done"]), pipeline.image_size), start=1):
            start = time.perf_counter()
            codes = pipeline.encode(pictures)
            state["seconds"] += time.perf_counter() - start
            file.write(codes.tobytes())
            state["done"], state["code_bytes"] = end, codes.shape[1]
            if group % _SAVED_EVERY == 0:
                _sync(folder / "progress.json", state, file.fileno())
            if on_coded:
                on_coded(end, total)
        os.fsync(file.fileno())
    facts = {"code_bytes": state["code_bytes"], "seconds": state["seconds"] / max(total, 1), "pictures": total}
    _write(folder / "done.json", facts)


def _progress(folder: Path) -> dict[str, float]:
    """How far it had come; from the beginning where that cannot be said for sure."""
    try:
        state = json.loads((folder / "progress.json").read_text("utf-8"))
        found = {"done": int(state["done"]), "seconds": float(state["seconds"]), "code_bytes": int(state["code_bytes"])}
        if (folder / "codes").stat().st_size >= found["done"] * found["code_bytes"] > 0:
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"done": 0, "seconds": 0.0, "code_bytes": 0}


def _sync(path: Path, state: Mapping[str, float], codes: int) -> None:
    os.fsync(codes)
    _write(path, state)


def _write(path: Path, value: Mapping[str, float]) -> None:
    """Replaces a small JSON file, whole or not at all."""
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def _read(split: Split, start: int, image_size: int) -> Iterator[tuple[list[Pixels], int]]:
    """Groups of pictures from `start` on and where each ends, the next one read while one is coded."""

    def read(first: int) -> list[Pixels]:
        return [_picture(split, index, image_size) for index in range(first, min(first + _AT_ONCE, len(split.labels)))]

    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(read, start)
        for first in range(start, len(split.labels), _AT_ONCE):
            pictures = ahead.result()
            ahead = pool.submit(read, first + _AT_ONCE)
            yield pictures, first + len(pictures)


def _picture(split: Split, index: int, image_size: int) -> Pixels:
    try:
        return read_image(split.pictures[index], image_size)
    except BadInput as error:
        raise BadInput(f"{error}: mend or remove it, every picture of an experiment counts") from error


def _key(split: Split, pipeline: Pipeline) -> str:
    """What the codes depend on, as one name."""
    digest = hashlib.sha256(f"{_VERSION} {pipeline.image_size} {split.fingerprint}".encode())
    for tensors in (pipeline.backbone.bottom.state_dict(), pipeline.codec.state()):
        digest.update(_hash(tensors))
    return digest.hexdigest()[:32]


def _hash(tensors: Mapping[str, Tensor]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].cpu().contiguous().numpy().tobytes())
    return digest.digest()
