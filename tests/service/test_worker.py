"""The learner's thread: one thread for the learner, batches under load, and failures that stay with their task."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.images import Pixels
from siesta.service.metrics import Metrics
from siesta.service.problems import Problem
from siesta.service.worker import LabelledInput, LearnerThread, PredictOptions
from tests.service.event_loop import run_async
from tests.service.server_process import IMAGE_SIZE


def make_pixels(seed: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)


def stored_samples(learner: Siesta) -> int:
    return learner.info().samples.stored


@pytest.fixture
def worker(learner_path: Path) -> Iterator[LearnerThread]:
    worker = LearnerThread(learner_path, Metrics())
    worker.open()
    yield worker
    worker.close()


class RecordedCalls:
    """Records the sizes of batches that reach the learner, and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.sizes: list[int] = []
        self.failing_call: int | None = None
        learn_many = Siesta.learn_many
        predict_many = Siesta.predict_many

        def recorded_learn(learner: Siesta, images: list[Pixels], labels: list[str]) -> list[int]:
            self.sizes.append(len(images))
            if self.failing_call == len(self.sizes):
                raise BadInput(f"the disk of {path} is full")
            return learn_many(learner, images, labels)

        def recorded_predict(learner: Siesta, images: list[Pixels], **options: Any) -> Any:
            self.sizes.append(len(images))
            return predict_many(learner, images, **options)

        monkeypatch.setattr(Siesta, "learn_many", recorded_learn)
        monkeypatch.setattr(Siesta, "predict_many", recorded_predict)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, learner_path: Path) -> RecordedCalls:
    return RecordedCalls(monkeypatch, learner_path)


def run_together(worker: LearnerThread, *requests: Coroutine[Any, Any, Any]) -> list[Any]:
    """Submit requests while the thread is busy, so that they are one batch; return results and exceptions."""

    async def run() -> list[Any]:
        busy, release = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def block(_: Siesta) -> None:
            loop.call_soon_threadsafe(busy.set)
            release.wait(30)

        blocking = asyncio.create_task(worker.query(block))
        await busy.wait()
        tasks = [asyncio.ensure_future(request) for request in requests]
        await asyncio.sleep(0.05)
        release.set()
        await blocking
        return await asyncio.gather(*tasks, return_exceptions=True)

    return run_async(run())


def test_images_of_concurrent_requests_are_learned_as_one_batch(worker: LearnerThread, calls: RecordedCalls) -> None:
    requests = [[LabelledInput(make_pixels(10 * n + m), f"label {n % 3}") for m in range(n)] for n in range(1, 6)]
    results = run_together(worker, *(worker.learn(images) for images in requests))
    assert calls.sizes == [15]
    assert [len(result.ids) for result in results] == [1, 2, 3, 4, 5]
    assert sorted(sample_id for result in results for sample_id in result.ids) == list(range(1, 16))


def test_concurrent_predictions_with_the_same_options_are_one_batch(
    worker: LearnerThread, calls: RecordedCalls
) -> None:
    run_async(worker.learn([LabelledInput(make_pixels(n), f"label {n}") for n in range(3)]))
    calls.sizes.clear()
    options = [PredictOptions(top=1), PredictOptions(top=2), PredictOptions(top=1)]
    results = run_together(worker, *(worker.predict([make_pixels(2)], each) for each in options))
    assert sorted(calls.sizes) == [1, 2]
    assert [len(result.predictions[0].top) for result in results] == [1, 2, 1]
    assert {result.predictions[0].label for result in results} == {"label 2"}


def test_a_failing_disk_fails_its_request_only_and_says_how_much_is_stored(
    worker: LearnerThread, calls: RecordedCalls
) -> None:
    calls.failing_call = 2
    long = [LabelledInput(make_pixels(n), "long") for n in range(80)]
    short = [LabelledInput(make_pixels(n), "short") for n in range(5)]
    failed, learned = run_together(worker, worker.learn(long), worker.learn(short))
    assert isinstance(failed, Problem) and (failed.status, failed.extra) == (503, {"safe": 32})
    assert failed.detail == "the disk of a.siesta is full"
    assert len(learned.ids) == 5
    assert run_async(worker.query(stored_samples)) == 37


def test_a_cancelled_request_is_not_executed(worker: LearnerThread) -> None:
    async def give_up() -> None:
        await asyncio.wait_for(worker.learn([LabelledInput(make_pixels(1), "late")]), 0.01)

    (outcome,) = run_together(worker, give_up())
    assert isinstance(outcome, TimeoutError)
    assert run_async(worker.query(stored_samples)) == 0


def test_a_failing_function_fails_its_request_only(worker: LearnerThread) -> None:
    def fail(_: Siesta) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_async(worker.query(fail))
    assert worker.ready and run_async(worker.query(lambda learner: learner.generation)) == 0


def test_the_revision_increases_with_changes_only(worker: LearnerThread) -> None:
    before = worker.revision
    run_async(worker.query(stored_samples))
    assert worker.revision == before
    run_async(worker.learn([LabelledInput(make_pixels(1), "a")]))
    learned = worker.revision
    assert learned > before
    run_async(worker.modify(lambda learner: learner.rename("a", "b")))
    assert worker.revision > learned


def test_queued_requests_are_finished_before_the_thread_ends(learner_path: Path) -> None:
    worker = LearnerThread(learner_path, Metrics(), thumbnails=False)
    worker.open()

    async def learn_and_close() -> int:
        images = [[LabelledInput(make_pixels(n), "a", b"thumbnail")] for n in range(5)]
        tasks = [asyncio.create_task(worker.learn(each)) for each in images]
        await asyncio.sleep(0)
        await asyncio.to_thread(worker.close)
        with pytest.raises(Problem, match="closing"):
            await worker.learn([LabelledInput(make_pixels(9), "a")])
        return sum(len(result.ids) for result in await asyncio.gather(*tasks))

    assert run_async(learn_and_close()) == 5
    with Siesta.open(learner_path, read_only=True) as learner:
        assert (stored_samples(learner), learner.info().bytes.thumbnails) == (5, 0)


def test_a_learner_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    worker = LearnerThread(tmp_path / "none.siesta", Metrics())
    with pytest.raises(BadInput, match="there is no learner"):
        worker.open()
    assert not worker.ready
