"""Pictures, decoded once: small copies in one file of the cache, which every epoch and every run reads.

A copy has one and a half times the image size as its short side, room for small crops to show something, and is a JPEG
of quality 95: a fifth of its raw bytes. Birds of 500 x 375 px for 96 px: 0.4 ms to read one, 2.1 ms from its own file,
beside 1.7 ms for its crops.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from siesta.errors import BadInput, Busy, Damaged, DiskRefused
from siesta.images import opened
from siesta.store.files import Lock, disk_errors, replace_file

__all__ = ["Copies", "cache_folder", "copied"]

_MARGIN = 1.5
_QUALITY = 95
_AHEAD = 256  # pictures in work at a time
_THINNEST = 32  # how much longer than high, or higher than long
_WAIT = 0.5  # seconds between looks at what another process copies

Notice = Callable[[int, int], None]
"""(pictures done, pictures in all)."""


def cache_folder() -> Path:
    """Where copies lie when nothing else is said."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "siesta" / "pictures"


@dataclass(frozen=True)
class Copies:
    """Small copies of pictures, in the order of their files.

    Attributes:
        files: Those that could be read.
        skipped: Why others could not.
        content: One JPEG after the other.
        ends: Where each ends in it, (N,).
        name: Where they lie, but for the suffix.
    """

    files: tuple[Path, ...]
    skipped: tuple[str, ...]
    content: mmap.mmap
    ends: npt.NDArray[np.int64]
    name: Path

    @property
    def bytes(self) -> int:
        """What all of them take on disk."""
        return int(self.ends[-1])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Image.Image:
        start = int(self.ends[index - 1]) if index else 0
        try:
            return Image.open(io.BytesIO(self.content[start : int(self.ends[index])])).convert("RGB")
        except (OSError, SyntaxError) as error:
            raise Damaged(f"copies of pictures in {self.name}.jpegs are damaged: remove it and run again") from error


def copied(
    files: Sequence[Path], image_size: int, folder: Path, notice: Notice | None = None, workers: int = 1
) -> Copies:
    """Copies of pictures for training at an image size, made where they are not there already.

    Args:
        files: What to copy; what cannot be read is skipped, and named.
        image_size: Side of the largest crops.
        folder: Where copies are kept, for other runs too.
        notice: Is told how many are done.
        workers: Threads that decode.
    """
    side = round(_MARGIN * image_size)
    name = folder / _key(files, side)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while (listed := _listed(name)) is None:
            try:
                lock = Lock(name.with_suffix(".lock"), lambda pid: f"{name} is being made by process {pid}")
            except Busy:  # another process is at it
                time.sleep(_WAIT)
                continue
            try:
                if _listed(name) is None:
                    _make(files, side, name, notice or (lambda _done, _all: None), workers)
            finally:
                name.with_suffix(".lock").unlink(missing_ok=True)
                lock.release()
        ends, skipped = listed
        kept = tuple(file for place, file in enumerate(files) if str(place) not in skipped)
        if not kept:
            raise BadInput(f"none of the {len(files):,} pictures can be read: {next(iter(skipped.values()))}")
        with name.with_suffix(".jpegs").open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Copies(kept, tuple(skipped.values()), mapped, np.array(ends, dtype=np.int64), name)


def _listed(name: Path) -> tuple[list[int], dict[str, str]] | None:
    """Where copies end, and what was skipped; None where they are not there, or not whole."""
    try:
        known = json.loads(name.with_suffix(".json").read_text("utf-8"))
        ends, skipped = [int(end) for end in known["ends"]], dict(known["skipped"])
        whole = name.with_suffix(".jpegs").stat().st_size == (ends[-1] if ends else 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (ends, skipped) if whole else None


def _key(files: Sequence[Path], side: int) -> str:
    """Names the copies: it changes with any file's path, size or time, and when it may be read at last."""
    digest = hashlib.sha256(f"{side} {_QUALITY}".encode())
    for file in files:
        try:
            facts = file.stat()
            known = f"{facts.st_size}\0{facts.st_mtime_ns}" + ("" if os.access(file, os.R_OK) else "\0refused")
        except OSError:  # a link to nowhere
            known = ""
        digest.update(f"{file.absolute()}\0{known}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:24]


def _make(files: Sequence[Path], side: int, name: Path, notice: Notice, workers: int) -> None:
    """Writes all copies, then the list of them: what is not listed is not there."""
    content = name.with_suffix(".jpegs")
    skipped: dict[str, str] = {}
    sizes: list[int] = []
    try:
        with content.open("wb") as out:
            for place, found in enumerate(_in_order(files, side, workers)):
                if isinstance(found, str):
                    skipped[str(place)] = found
                else:
                    out.write(found)
                    sizes.append(len(found))
                if place == min(100, len(files) - 1):
                    _check_room(len(files) * sum(sizes) // (place + 1), content)
                notice(place + 1, len(files))
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        content.unlink(missing_ok=True)
        raise
    listing = json.dumps({"ends": list(accumulate(sizes)), "skipped": skipped})
    replace_file(name.with_suffix(".json"), listing.encode())


def _in_order(files: Sequence[Path], side: int, workers: int) -> Iterator[bytes | str]:
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(files), _AHEAD):
            yield from pool.map(lambda file: _copy(file, side), files[start : start + _AHEAD])


def _copy(file: Path, side: int) -> bytes | str:
    """A small JPEG, or why there is none."""
    try:
        picture = opened(file)
    except BadInput as error:
        return str(error)
    if max(picture.size) > _THINNEST * min(picture.size):
        return f"{file} with its {picture.width} x {picture.height} pixels is too long and thin to be used"
    ratio = min(side / min(picture.size), 1.0)
    size = max(round(picture.width * ratio), 1), max(round(picture.height * ratio), 1)
    out = io.BytesIO()
    picture.resize(size, Image.Resampling.BICUBIC).save(out, "JPEG", quality=_QUALITY, subsampling=0)
    return out.getvalue()


def _check_room(wanted: int, part: Path) -> None:
    free = shutil.disk_usage(part.parent).free
    if wanted > free:
        raise DiskRefused(
            f"copies of these pictures take about {wanted / 1e6:,.1f} MB, and {part.parent} has {free / 1e6:,.1f} MB "
            "free: choose another folder for them"
        )
