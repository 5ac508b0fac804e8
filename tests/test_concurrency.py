"""Concurrency across processes: one learns, four predict, with and without sleeps meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.concurrent_load import IMAGES, TimedPrediction, label, run_load
from benchmarks.learners import noise
from siesta import Siesta
from siesta.head import Head
from siesta.pipeline import Pipeline
from siesta.sleep.calibration import Confidence, softmax
from tests.stores import store_of

SIZE, BEFORE = 32, 40


@pytest.mark.parametrize("head", ["cosine", "discriminant"])
@pytest.mark.parametrize(
    ("seconds", "asleep"),
    [(4, None), (4, 1.5), pytest.param(60, None, marks=pytest.mark.slow), pytest.param(60, 20, marks=pytest.mark.slow)],
)
def test_every_prediction_is_that_of_one_generation_and_of_the_samples_until_then(
    tmp_path: Path, seconds: float, asleep: float | None, head: str
) -> None:
    path = tmp_path / "crowd.siesta"
    pictures = noise(IMAGES, SIZE)
    with Siesta.create(path, image_size=SIZE, head=head) as learner:
        learner.learn_many([pictures[n % IMAGES] for n in range(BEFORE)], [label(n) for n in range(BEFORE)])
    result = run_load(path, seconds, SIZE, asleep)
    assert all(len(asked) >= seconds for asked in result.predictions), "every process was answered all the time"
    with Siesta.open(path, read_only=True) as learner:
        assert learner.info().samples.stored == result.learned > BEFORE
        for asked in result.predictions:
            states = [(question.generation, question.learned) for question in asked]
            assert states == sorted(states), "no process goes back to an older state"
        used = {question.generation for asked in result.predictions for question in asked}
        assert (asleep is None) == (used == {0}), "new weights are loaded between predictions"
        assert_no_contradictions([question for asked in result.predictions for question in asked])
        for generation in used if head == "cosine" else ():
            some = [question for asked in result.predictions for question in asked if question.generation == generation]
            check(learner, generation, some)


def assert_no_contradictions(asked: list[TimedPrediction]) -> None:
    """Compare predictions that different processes made with the same generation and the same samples."""
    found: dict[tuple[int, int, int], dict[str, float]] = {}
    for question in asked:
        top = dict(question.prediction.top)
        first = found.setdefault((question.generation, question.learned, question.image), top)
        assert top == pytest.approx(first, abs=1e-3)


def check(learner: Siesta, number: int, asked: list[TimedPrediction]) -> None:
    """Compare predictions of one generation with those computed from its files and the stored samples."""
    store = store_of(learner)
    generation = store.generations.get(number)
    weights = store.generations.read(generation)
    pipeline = Pipeline.from_store(store, top=weights["top"])
    ids = store.samples.ids()
    assert ids.tolist() == list(range(1, len(ids) + 1)), "in the order of learning"
    features = pipeline.features(store.samples.get(ids)[1])
    questions = pipeline.features(pipeline.encode(noise(IMAGES, SIZE)))
    temperature = Confidence.from_state((generation.report or {}).get("confidence")).temperature
    ids_of = {record.label: record.id for record in store.classes.all()}
    for question in asked:
        head = Head.from_state(weights["head"])
        for name, class_id in ids_of.items():
            taught = [n for n in range(generation.since, question.learned) if label(n) == name]
            if taught:
                head.set_recent(class_id, total(features[taught]), len(taught))
        scores = softmax(head.logits(questions[[question.image]]) / temperature)[0]
        names = {class_id: name for name, class_id in ids_of.items()}
        expected = dict(zip((names[some] for some in head.class_ids.tolist()), scores.tolist(), strict=True))
        assert dict(question.prediction.top) == pytest.approx(
            {name: expected[name] for name, _ in question.prediction.top}, abs=1e-4
        )
        assert question.prediction.score == pytest.approx(max(expected.values()), abs=1e-4)


def total(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    return np.asarray(features.sum(axis=0, dtype=np.float64))
