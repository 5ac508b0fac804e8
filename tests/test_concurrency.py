"""One teacher and four readers in processes of their own, with and without sleeps beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from benchmarks.crowd import PICTURES, Asked, gather, label
from benchmarks.learners import noise
from siesta import Siesta
from siesta.confidence import Confidence
from siesta.head import Head
from siesta.pipeline import Pipeline

SIZE, BEFORE = 32, 40


@pytest.mark.parametrize(
    ("seconds", "asleep"),
    [(4, None), (4, 1.5), pytest.param(60, None, marks=pytest.mark.slow), pytest.param(60, 20, marks=pytest.mark.slow)],
)
def test_every_answer_is_that_of_one_generation_and_of_what_was_taught_by_then(
    tmp_path: Path, seconds: float, asleep: float | None
) -> None:
    path = tmp_path / "crowd.siesta"
    pictures = noise(PICTURES, SIZE)
    with Siesta.create(path, image_size=SIZE) as learner:
        learner.learn_many([pictures[n % PICTURES] for n in range(BEFORE)], [label(n) for n in range(BEFORE)])
    crowd = gather(path, seconds, SIZE, asleep)
    assert all(len(asked) >= seconds for asked in crowd.asked), "all were answered, all the time"
    with Siesta.open(path, read_only=True) as learner:
        assert len(learner.store) == crowd.taught > BEFORE
        for asked in crowd.asked:
            states = [(question.generation, question.taught) for question in asked]
            assert states == sorted(states), "nobody goes back in time"
        used = {question.generation for asked in crowd.asked for question in asked}
        assert (asleep is None) == (used == {0}), "new weights are taken over while it is being asked"
        for generation in used:
            some = [question for asked in crowd.asked for question in asked if question.generation == generation]
            check(learner, generation, some)


def check(learner: Siesta, number: int, asked: list[Asked]) -> None:
    """Compares answers of one generation with its own, made anew from its files and the stored samples."""
    store = learner.store
    generation = store.generations.get(number)
    weights = store.generations.read(generation)
    pipeline = Pipeline.of(store, top=weights["top"])
    ids = store.samples.ids()
    assert ids.tolist() == list(range(1, len(ids) + 1)), "in the order in which they were taught"
    features = pipeline.features(store.get(ids)[1])
    questions = pipeline.features(pipeline.encode(noise(PICTURES, SIZE)))
    temperature = Confidence.from_state((generation.report or {}).get("confidence")).temperature
    ids_of = {record.label: record.id for record in store.classes()}
    for question in asked:
        head = Head.from_state(weights["head"])
        for name, class_id in ids_of.items():
            taught = [n for n in range(generation.since, question.taught) if label(n) == name]
            if taught:
                head.set_recent(class_id, total(features[taught]), len(taught))
        scores = head.probabilities(torch.from_numpy(questions[[question.picture]]), temperature)[0].numpy()
        names = {class_id: name for name, class_id in ids_of.items()}
        expected = dict(zip((names[some] for some in head.class_ids.tolist()), scores.tolist(), strict=True))
        assert dict(question.answer.top) == pytest.approx(
            {name: expected[name] for name, _ in question.answer.top}, abs=1e-4
        )
        assert question.answer.score == pytest.approx(max(expected.values()), abs=1e-4)


def total(features: npt.NDArray[np.float32]) -> torch.Tensor:
    return torch.from_numpy(features.astype(np.float64).sum(axis=0))
