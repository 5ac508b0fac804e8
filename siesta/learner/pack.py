"""A learner as one file for the machine that sleeps for it, and that file as a learner again."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from siesta import __version__
from siesta.errors import BadInput, Damaged
from siesta.files import cache_folder, disk_errors, replace_file, sha256
from siesta.learner.sleep import LOCK_PATIENCE
from siesta.sleep.job import job_folder
from siesta.store import Store
from siesta.store.check import check_store
from siesta.store.memory_copy import check_tables, copy_memory, memory_facts
from siesta.store.pack_file import PackFile, write_pack_file
from siesta.store.schema import DATABASE, FORMAT

__all__ = ["PackReport", "has_bottom", "open_pack", "pack_learner", "unpacked"]


_WEIGHTS = ("top", "head")
_MOST_BOTTOMS = 8  # bottoms that are remembered


@dataclass(frozen=True)
class PackReport:
    """What was packed: stored samples, classes, the generation of weights, and the size of the file."""

    samples: int
    classes: int
    generation: int
    bytes: int


def pack_learner(path: str | Path, file: str | Path, *, bottom: bool = True) -> PackReport:
    """Write what a sleep needs of a learner into one file; other processes may learn meanwhile.

    It has codes, classes, statistics, held-out marks, rehearsal counts, settings, codec, bottom, and the active top and
    head; no pictures, thumbnails, keys, edits or tokens.

    Args:
        path: The learner's directory.
        file: The file to write; it must not exist, as it may hold a sleep that was not taken back.
        bottom: Whether the file has the bottom; one that the other machine has unpacked before may be left out.

    Raises:
        Busy: The learner is asleep, or being changed.
    """
    path, file = Path(path), Path(file)
    with disk_errors(file):
        if file.exists() or file.is_symlink():
            raise BadInput(f"{file} exists already: choose another name or remove it first")
    with contextlib.closing(Store.open(path, "sleep")) as store, store.sleeping(LOCK_PATIENCE):
        return _pack(store, path, file, bottom)


def _pack(store: Store, path: Path, file: Path, bottom: bool) -> PackReport:
    snapshot = store.row_snapshot()
    samples = sum(known.stored for known in snapshot.classes)
    if not samples:
        raise BadInput(f"{path} has no samples to sleep on: learn some first")
    record = store.packs.record()
    parts = {**store.constants.files(), **store.generations.files(snapshot.generation)}
    if not bottom:
        parts.pop("bottom", None)
    facts = {"siesta": __version__, "format": FORMAT, "id": record.id}
    with _packing_folder(file) as folder:
        copy_memory(path, folder / DATABASE)
        write_pack_file(file, "pack", facts, {DATABASE: folder / DATABASE, **parts})
    _check_hashes(file, {**store.constants.hashes(), **snapshot.generation.hashes}, path)
    return PackReport(samples, len(snapshot.classes), record.generation, file.stat().st_size)


@contextmanager
def _packing_folder(file: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `file`, which is removed afterwards."""
    folder = file.with_name(f".{file.name[:100]}.packing")
    with disk_errors(file):
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _check_hashes(file: Path, hashes: Mapping[str, str], path: Path) -> None:
    """Raise `Damaged`, and remove a pack, if it has a damaged file of the learner."""
    parts = PackFile.open(file).parts
    for name, expected in hashes.items():
        if name in parts and parts[name].sha256 != expected:
            file.unlink()
            raise Damaged(f"{name} of {path} is damaged: `siesta check` names the damage")


def open_pack(file: Path) -> PackFile:
    """Open a pack that a sleep can be made on.

    Raises:
        BadInput: It has slept already.
        Damaged: It is damaged, or was made by another version of siesta.
    """
    pack = PackFile.open(file)
    if pack.kind == "slept":
        raise BadInput(f"{file} has slept already: bring it back with `siesta take`")
    if pack.facts.get("format") != FORMAT:
        version = pack.facts.get("siesta")
        raise Damaged(
            f"{file} was packed by siesta {version}, this is {__version__}: install the same on both machines"
        )
    return pack


@contextmanager
def unpacked(pack: PackFile) -> Iterator[Path]:
    """Yield the folder of a learner that is made of a pack, beside it; the folder is removed afterwards.

    Raises:
        Damaged: Something in the pack is damaged.
        BadInput: The pack has no bottom, and none with its hash was unpacked here before.
    """
    folder = job_folder(pack.path) / "learner"
    with disk_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)  # of a sleep that was killed
        try:
            folder.mkdir(parents=True, mode=0o700)
            _extract(pack, folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _extract(pack: PackFile, folder: Path) -> None:
    pack.extract(DATABASE, folder / DATABASE)
    check_tables(folder / DATABASE)
    generation, hashes = memory_facts(folder)
    weights = folder / "generations" / f"{generation:06d}"
    weights.mkdir(parents=True)
    for name in pack.parts:
        if name != DATABASE:
            pack.extract(name, (weights if name in _WEIGHTS else folder) / f"{name}.safetensors")
    if "bottom" in hashes:
        _complete_bottom(pack, folder / "bottom.safetensors", hashes["bottom"])
    findings = [found for found in check_store(folder) if found.kind != "cache"]
    if findings:
        raise Damaged(f"{pack.path} is damaged ({findings[0].words}): pack again")


def _complete_bottom(pack: PackFile, file: Path, expected: str) -> None:
    """Remember the bottom of a pack by its hash, or add it to an unpacked learner without one."""
    if not file.exists():
        if not has_bottom(expected):
            raise BadInput(f"{pack.path} has no bottom, and none like it was unpacked here before: pack it with one")
        shutil.copyfile(_bottom_file(expected), file)
    elif sha256(file) == expected and not has_bottom(expected):
        known = _bottom_file(expected)
        known.parent.mkdir(parents=True, exist_ok=True)
        replace_file(known, file.read_bytes())
        newest_first = sorted(known.parent.glob("*.safetensors"), key=lambda kept: kept.stat().st_mtime, reverse=True)
        for old in newest_first[_MOST_BOTTOMS:]:
            old.unlink(missing_ok=True)


def has_bottom(expected: str) -> bool:
    """Whether a bottom with this SHA-256 was unpacked here before and is remembered."""
    if not re.fullmatch("[0-9a-f]{64}", expected):
        return False
    file = _bottom_file(expected)
    return file.is_file() and sha256(file) == expected


def _bottom_file(expected: str) -> Path:
    return cache_folder("bottoms") / f"{expected}.safetensors"
