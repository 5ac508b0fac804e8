"""Which samples are held out: some independent images, whole runs of near-duplicates, and no long runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from siesta.store import NewSample, Store
from siesta.store.holding_out import BESIDE, MEASURED, REHEARSED
from tests.store.stores import WIDTH, make_store

CODE_BYTES = 400


class Bursts:
    """Teaches images of a place as codes with an equal background, and near-duplicates of them."""

    def __init__(self, background: float = 0.0, seed: int = 0) -> None:
        self.store = make_store(None, capacity=1000, code_bytes=CODE_BYTES, held_out=True)
        self._rng = np.random.default_rng(seed)
        self._background = self._rng.integers(0, 256, int(background * CODE_BYTES))

    def teach(self, label: str, count: int = 1, independent: bool = True) -> list[int]:
        """Teach a burst of near-duplicates, or as many images that are independent; return their ids."""
        view = self._codes()
        ids = []
        for _ in range(count):
            codes = self._codes() if independent else np.where(self._rng.random(CODE_BYTES) < 0.6, view, self._codes())
            view = codes
            new = NewSample(label, codes.astype(np.uint8).tobytes(), np.zeros(WIDTH, np.float32))
            ids.append(self.store.add([new])[0].id)
        return ids

    def _codes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        codes = self._rng.integers(0, 256, CODE_BYTES)
        codes[: len(self._background)] = self._background
        return codes

    def sides(self, ids: list[int]) -> list[int]:
        """Return the column `held` of samples."""
        rows = dict(self.store.session.connection.execute("SELECT id, held FROM samples").fetchall())
        return [rows[sample] for sample in ids]


@pytest.fixture(params=[0.0, 0.5], ids=["no background", "same background"])
def bursts(request: pytest.FixtureRequest) -> Iterator[Bursts]:
    made = Bursts(request.param)
    made.teach("others", 10)
    yield made
    held = made.store.session.connection.execute("SELECT class_id, sum(held > 0) FROM samples GROUP BY class_id")
    counts = {record[0]: record[1] for record in made.store.session.connection.execute("SELECT id, held FROM classes")}
    assert dict(held.fetchall()) == counts


def test_of_independent_images_the_20th_and_every_fourth_after_it_are_held_out(bursts: Bursts) -> None:
    sides = bursts.sides(bursts.teach("cup", 60))
    assert [number + 1 for number, side in enumerate(sides) if side] == [20, 24, 28, 32, 36]
    assert set(sides) == {REHEARSED, MEASURED}


def test_a_short_run_is_held_out_whole_and_one_of_it_is_measured(bursts: Bursts) -> None:
    bursts.teach("cup", 19)
    assert bursts.sides(bursts.teach("cup", 4, independent=False)) == [MEASURED, BESIDE, BESIDE, BESIDE]
    assert bursts.sides(bursts.teach("cup", 13)) == [REHEARSED] * 12 + [MEASURED], "a fifth at most is held out"
    measured, _ = bursts.store.samples.held_out(10**6)
    memory = bursts.store.samples.memory()
    assert len(measured) == 2 and len(memory.ids) == 10 + 19 + 12 and not set(measured) & set(memory.ids)


def test_a_run_that_began_among_rehearsed_samples_is_rehearsed(bursts: Bursts) -> None:
    bursts.teach("cup", 15)
    assert set(bursts.sides(bursts.teach("cup", 40, independent=False))) == {REHEARSED}
    assert bursts.sides(bursts.teach("cup")) == [MEASURED], "another image"


def test_a_long_run_is_released(bursts: Bursts) -> None:
    """Samples that no sleep sees are not learned, so a burst that is long is not held out."""
    bursts.teach("cup", 19)
    ids = bursts.teach("cup", 10, independent=False)
    assert bursts.sides(ids) == [MEASURED] + [BESIDE] * 9
    (longer,) = bursts.teach("cup")
    assert bursts.sides([longer]) == [REHEARSED], "another image"
    assert bursts.sides(ids) == [MEASURED] + [BESIDE] * 9
    other = Bursts()
    other.teach("cup", 19)
    ids = other.teach("cup", 30, independent=False)
    assert set(other.sides(ids)) == {REHEARSED}


def test_bursts_of_two_classes_that_alternate_are_found(bursts: Bursts) -> None:
    for label in ("cup", "mug"):
        bursts.teach(label, 19)
    views = {label: bursts._codes() for label in ("cup", "mug")}
    sides: dict[str, list[int]] = {"cup": [], "mug": []}
    for _ in range(3):
        for label, view in views.items():
            codes = np.where(bursts._rng.random(CODE_BYTES) < 0.6, view, bursts._codes()).astype(np.uint8)
            added = bursts.store.add([NewSample(label, codes.tobytes(), np.zeros(WIDTH, np.float32))])
            sides[label] += bursts.sides([added[0].id])
    assert sides == {label: [MEASURED, BESIDE, BESIDE] for label in views}


def test_a_merged_class_keeps_five_runs(bursts: Bursts) -> None:
    for label in ("cup", "mug"):
        bursts.teach(label, 19)
        bursts.teach(label, 3, independent=False)
        bursts.teach(label, 60)
    store: Store = bursts.store
    with store.sleeping():
        store.edits.merge("mug", "cup", lambda _, state: state)
    sides = bursts.sides(store.samples.ids().tolist())
    assert (sides.count(MEASURED), sides.count(BESIDE)) == (5, 4), "three runs of one class and two of the other"
    assert store.samples.count_held_out() == 9
