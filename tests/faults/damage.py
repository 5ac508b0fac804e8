"""Files of a learner that are damaged: bytes that change, and files that are cut short."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from siesta.errors import Damaged, SiestaError
from siesta.learner.integrity import check, repair
from tests.faults.invariants import State, opened, state_of
from tests.faults.operations import open_learner

__all__ = ["PLACES", "Damage", "Outcome", "outcome_of"]

PAGE = 16384
_DATABASE = "store.sqlite"


@dataclass(frozen=True)
class Damage:
    """A change of one file."""

    words: str
    file: str
    change: Callable[[bytes], bytes]


@dataclass(frozen=True)
class Outcome:
    """What became of a damaged learner.

    Attributes:
        kind: "harmless", "repaired", or "refused" by `repair`, which names what is lost.
        lost: Number of samples that `repair` could not keep.
        problems: What is silently wrong.
    """

    kind: str
    lost: int = 0
    problems: tuple[str, ...] = ()


def _first_page(path: Path, _per_page: int) -> Iterator[Damage]:
    rng = random.Random(0)
    yield from (_flipped(_DATABASE, place, rng) for place in range(PAGE))


def _other_pages(path: Path, per_page: int) -> Iterator[Damage]:
    rng = random.Random(1)
    for page in range(PAGE, (path / _DATABASE).stat().st_size, PAGE):
        for place in sorted(rng.sample(range(page, page + PAGE), per_page)):
            yield _flipped(_DATABASE, place, rng)


def _truncations(path: Path, _per_page: int) -> Iterator[Damage]:
    yield from (_truncated(_DATABASE, size) for size in range(0, (path / _DATABASE).stat().st_size, PAGE))


def _weights(path: Path, per_page: int) -> Iterator[Damage]:
    rng = random.Random(2)
    for file in sorted(path.rglob("*.safetensors")):
        name = str(file.relative_to(path))
        for place in sorted(rng.sample(range(file.stat().st_size), min(per_page, 8))):
            yield _flipped(name, place, rng)
        yield _truncated(name, rng.randrange(file.stat().st_size))


PLACES: dict[str, Callable[[Path, int], Iterator[Damage]]] = {
    "first page": _first_page,
    "other pages": _other_pages,
    "page borders": _truncations,
    "weights": _weights,
}
"""Where a learner is damaged: a bit in each byte of the first page of its database, a bit of random bytes of each other
page, the database cut at each page border, and a bit of random bytes of each file of weights and each such file cut."""


def _flipped(file: str, place: int, rng: random.Random) -> Damage:
    bit = rng.randrange(8)

    def change(data: bytes) -> bytes:
        return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]

    return Damage(f"bit {bit} of byte {place} of {file}", file, change)


def _truncated(file: str, size: int) -> Damage:
    return Damage(f"{file} cut to {size} bytes", file, lambda data: data[:size])


def outcome_of(damage: Damage, intact: Path, before: State, path: Path) -> Outcome:
    """Damage a copy of a learner, put at `path` for the time being; return what `check` and `repair` make of it."""
    shutil.copytree(intact, path, copy_function=os.link)
    try:
        data = (path / damage.file).read_bytes()
        (path / damage.file).unlink()
        (path / damage.file).write_bytes(damage.change(data))
        if not _findings(path):
            changed = _changed(path, before)
            return Outcome("harmless", problems=(f"check finds nothing, but {changed}",) if changed else ())
        wrong = _answers_wrongly(path, before)
        try:
            repair(path)
        except SiestaError as error:
            return Outcome("refused", problems=(*wrong, *_unless_named(error)))
        wrong += [f"after repair: {words}" for words in _findings(path)]
        try:
            after = opened(path)
        except SiestaError as error:
            return Outcome("repaired", problems=(*wrong, f"after repair: {error}"))
        wrong += _changed_samples(before, after)
        return Outcome("repaired", len(before.samples) - len(after.samples), tuple(wrong))
    finally:
        shutil.rmtree(path)


def _changed(path: Path, before: State) -> str:
    """Return how a learner has changed, empty if it has not."""
    try:
        changed = opened(path).difference(before)
    except SiestaError as error:
        return str(error)
    return f"{changed} differ" if changed else ""


def _findings(path: Path) -> list[str]:
    try:
        return [found.words for found in check(path)]
    except SiestaError as error:
        return [str(error)]


def _unless_named(error: SiestaError) -> Iterator[str]:
    if not isinstance(error, Damaged) or "\n" in str(error):
        yield f"repair: {type(error).__name__}: {error}"


def _answers_wrongly(path: Path, before: State) -> list[str]:
    """Return whether a learner that is opened without a check answers otherwise, and says nothing."""
    try:
        with open_learner(path) as learner:
            same = state_of(learner).answers == before.answers
    except SiestaError:
        return []
    return [] if same else ["it answers otherwise"]


def _changed_samples(before: State, after: State) -> Iterator[str]:
    for sample, (label, codes) in after.samples.items():
        if sample not in before.samples or before.samples[sample][1] != codes:
            yield f"after repair, sample {sample} has other codes"
        elif before.samples[sample][0] != label and not label.startswith("lost class"):
            yield f"after repair, sample {sample} is of class '{label}' instead of '{before.samples[sample][0]}'"
