"""The desk: one thread for the learner, few passes for many requests, and nobody pays for another's failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.images import Pixels
from siesta.service.desk import Desk, Lesson, Manner
from siesta.service.metrics import Metrics
from siesta.service.problems import Problem

SIZE = 32


def pixels(value: int) -> Pixels:
    return np.random.default_rng(value).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    Siesta.create(tmp_path / "a.siesta", memory="1MB", image_size=SIZE).close()
    made = Desk(tmp_path / "a.siesta", Metrics())
    made.open()
    yield made
    made.close()


class Calls:
    """Counts what reaches the learner, and lets some of it fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.fail_at: int | None = None
        learn, predict = Siesta.learn_many, Siesta.predict_many

        def learn_many(learner: Siesta, images: Any, labels: Any) -> list[int]:
            images = list(images)
            self.sizes.append(len(images))
            if self.fail_at == len(self.sizes):
                raise BadInput(f"the disk of {learner.store.path} is full")
            return learn(learner, images, labels)

        def predict_many(learner: Siesta, images: Any, *manner: Any, **more: Any) -> Any:
            images = list(images)
            self.sizes.append(len(images))
            return predict(learner, images, *manner, **more)

        monkeypatch.setattr(Siesta, "learn_many", learn_many)
        monkeypatch.setattr(Siesta, "predict_many", predict_many)


async def together(desk: Desk, *works: Any) -> list[Any]:
    """Lays all of them on the desk while the learner is busy with something else."""
    busy, hold = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(_: Siesta) -> None:
        loop.call_soon_threadsafe(busy.set)
        hold.wait(30)

    first = asyncio.create_task(desk.look(wait))
    await busy.wait()
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0.05)
    hold.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_lessons_that_lie_there_together_are_one_pass(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    lessons = [[Lesson(pixels(10 * n + m), f"label {n % 3}") for m in range(n)] for n in range(1, 6)]
    learned = asyncio.run(together(desk, *(desk.learn(some) for some in lessons)))
    assert calls.sizes == [15]
    assert [len(one.ids) for one in learned] == [1, 2, 3, 4, 5]
    assert sorted(sample for one in learned for sample in one.ids) == list(range(1, 16))
    calls.sizes.clear()
    manners = [Manner(top=1), Manner(top=2), Manner(top=1)]
    answers = asyncio.run(together(desk, *(desk.predict([pixels(20)], manner) for manner in manners)))
    assert sorted(calls.sizes) == [1, 2]
    assert [len(one.predictions[0].top) for one in answers] == [1, 2, 1]
    assert {one.predictions[0].label for one in answers} == {"label 2"}


def test_a_failing_disk_says_how_much_is_safe_and_others_go_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    calls.fail_at = 2
    long = [Lesson(pixels(n), "long") for n in range(80)]
    short = [Lesson(pixels(n), "short") for n in range(5)]
    failed, learned = asyncio.run(together(desk, desk.learn(long), desk.learn(short)))
    assert isinstance(failed, Problem) and (failed.status, failed.more) == (503, {"safe": 32})
    assert failed.detail == "the disk of a.siesta is full"
    assert len(learned.ids) == 5
    assert asyncio.run(desk.look(lambda learner: len(learner.store))) == 37


def test_what_nobody_waits_for_any_more_is_not_done(desk: Desk) -> None:
    async def give_up() -> None:
        await asyncio.wait_for(desk.learn([Lesson(pixels(1), "late")]), 0.01)

    async def all_of_it() -> list[Any]:
        return await together(desk, give_up())

    (outcome,) = asyncio.run(all_of_it())
    assert isinstance(outcome, TimeoutError)
    assert asyncio.run(desk.look(lambda learner: len(learner.store))) == 0


def test_an_errand_that_fails_hurts_nobody(desk: Desk) -> None:
    def stumble(_: Siesta) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(desk.look(stumble))
    assert desk.ready and asyncio.run(desk.look(lambda learner: learner.generation)) == 0


def test_the_revision_changes_with_what_is_known(desk: Desk) -> None:
    before = desk.revision
    asyncio.run(desk.look(lambda learner: learner.info()))
    assert desk.revision == before
    asyncio.run(desk.learn([Lesson(pixels(1), "a")]))
    assert desk.revision > before


def test_work_that_lies_there_is_finished_before_it_closes(tmp_path: Path) -> None:
    Siesta.create(tmp_path / "b.siesta", memory="1MB", image_size=SIZE).close()
    desk = Desk(tmp_path / "b.siesta", Metrics(), thumbnails=False)
    desk.open()

    async def teach_and_close() -> int:
        tasks = [asyncio.create_task(desk.learn([Lesson(pixels(n), "a", b"small")])) for n in range(5)]
        await asyncio.sleep(0)
        await asyncio.to_thread(desk.close)
        with pytest.raises(Problem, match="closing"):
            await desk.learn([Lesson(pixels(9), "a")])
        return sum(len(learned.ids) for learned in await asyncio.gather(*tasks))

    assert asyncio.run(teach_and_close()) == 5
    with Siesta.open(tmp_path / "b.siesta", read_only=True) as learner:
        assert (len(learner.store), learner.store.thumbnails.bytes()) == (5, 0)


def test_a_learner_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "none.siesta", Metrics())
    with pytest.raises(BadInput, match="there is no learner"):
        desk.open()
    assert not desk.ready
