"""The file in which a learner travels to the machine that sleeps for it, and its new weights travel back.

    8 bytes     magic
    4 bytes     length of the header, little-endian
    32 bytes    SHA-256 of the header
    header      JSON: kind, facts, and name, length and SHA-256 of each part
    parts       one after the other

Nothing in it is compressed or unpickled, so a file is never larger than it looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from siesta.errors import BadInput, Damaged
from siesta.files import disk_errors, replacing, sha256

__all__ = ["Kind", "PackFile", "Part", "write_pack_file"]

Kind = Literal["pack", "slept"]
"""What a file holds: a learner that is to sleep, or what a sleep has made of it."""

PARTS = ("store.sqlite", "bottom", "codec", "graphs", "top", "head", "sums")
"""Names that a part may have."""

_MAGIC = b"SIESTApk"
_MOST_HEADER_BYTES = 2**20
_PREFIX_BYTES = len(_MAGIC) + 4 + 32
_BLOCK_BYTES = 2**20
_MODE = 0o600  # the owner alone may read what was learned


@dataclass(frozen=True)
class Part:
    """Where a part is in its file, and its hash."""

    start: int
    length: int
    sha256: str


def write_pack_file(path: Path, kind: Kind, facts: Mapping[str, Any], parts: Mapping[str, Path | bytes]) -> None:
    """Write a file atomically.

    Args:
        path: The file; an existing one is replaced.
        kind: What it holds.
        facts: JSON values about it.
        parts: The content of each part, or the file that has it.
    """
    entries = [{"name": name, "bytes": _length(part), "sha256": _sha256(part)} for name, part in parts.items()]
    header = json.dumps({"kind": kind, "facts": facts, "parts": entries}).encode()
    with replacing(path, mode=_MODE) as file:
        file.write(_MAGIC + len(header).to_bytes(4, "little") + hashlib.sha256(header).digest() + header)
        for part in parts.values():
            if isinstance(part, bytes):
                file.write(part)
            else:
                with part.open("rb") as source:
                    while block := source.read(_BLOCK_BYTES):
                        file.write(block)


def _length(part: Path | bytes) -> int:
    return len(part) if isinstance(part, bytes) else part.stat().st_size


def _sha256(part: Path | bytes) -> str:
    return hashlib.sha256(part).hexdigest() if isinstance(part, bytes) else sha256(part)


@dataclass(frozen=True)
class PackFile:
    """A file whose header was read and checked; each part is checked when it is read.

    Attributes:
        path: The file.
        kind: What it holds.
        facts: JSON values about it.
        parts: Its parts, by name.
    """

    path: Path
    kind: Kind
    facts: Mapping[str, Any]
    parts: Mapping[str, Part]

    @classmethod
    def open(cls, path: Path) -> PackFile:
        """Read the header of a file.

        Raises:
            BadInput: There is no file, or it is something else.
            Damaged: It is damaged or not complete.
        """
        with disk_errors(path):
            if not path.is_file():
                raise BadInput(f"there is no pack at {path}: `siesta pack` makes one")
            with path.open("rb") as file:
                data = _read_header(path, file)
                try:
                    header = json.loads(data)
                    found = cls(path, header["kind"], dict(header["facts"]), _placed(header["parts"], file.tell()))
                except (KeyError, TypeError, ValueError) as error:
                    raise _damaged(path) from error
            ends = [part.start + part.length for part in found.parts.values()]
            if max(ends, default=0) != path.stat().st_size:
                raise _damaged(path)
        return found

    def read(self, name: str) -> bytes:
        """Return a part."""
        return b"".join(self._blocks(name))

    def extract(self, name: str, target: Path) -> None:
        """Write a part to a new file."""
        with disk_errors(target), target.open("xb") as file:
            for block in self._blocks(name):
                file.write(block)

    def _blocks(self, name: str) -> Iterator[bytes]:
        """Yield a part in blocks, and raise `Damaged` at the end if its hash is wrong."""
        if name not in self.parts:
            raise _damaged(self.path)
        part = self.parts[name]
        digest = hashlib.sha256()
        with _opened(self.path) as file:
            file.seek(part.start)
            left = part.length
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                digest.update(block)
                yield block
        if digest.hexdigest() != part.sha256:
            raise _damaged(self.path)


def _read_header(path: Path, file: BinaryIO) -> bytes:
    """Return the header of an open file; raise unless its hash is right."""
    prefix = file.read(_PREFIX_BYTES)
    if not prefix.startswith(_MAGIC):
        raise BadInput(f"{path} is not a pack: `siesta pack` makes one")
    length = int.from_bytes(prefix[len(_MAGIC) : len(_MAGIC) + 4], "little")
    if len(prefix) < _PREFIX_BYTES or length > _MOST_HEADER_BYTES:
        raise _damaged(path)
    data = file.read(length)
    if hashlib.sha256(data).digest() != prefix[-32:]:
        raise _damaged(path)
    return data


def _placed(entries: list[dict[str, Any]], start: int) -> dict[str, Part]:
    """Return the parts that a header lists, the first at `start`; raise `ValueError` if it is not one of ours."""
    parts: dict[str, Part] = {}
    for entry in entries:
        name, length = entry["name"], entry["bytes"]
        if name not in PARTS or name in parts or not isinstance(length, int) or length < 0:
            raise ValueError(f"part '{name}' of {length} bytes")
        parts[name] = Part(start, length, str(entry["sha256"]))
        start += length
    return parts


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with disk_errors(path), path.open("rb") as file:
        yield file


def _damaged(path: Path) -> Damaged:
    return Damaged(f"{path} is damaged or not complete: copy it again, or pack again")
