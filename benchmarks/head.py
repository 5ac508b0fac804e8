"""The discriminant head beside the cosine softmax: lessons, questions, and the first question after a sleep.

Two learners that differ in the head only take turns, so that a disturbance affects both. Means are given, not medians:
what the discriminant does once in a while, such as taking lessons into its covariance, is shared among all calls.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.learners import learner_of, noise
from benchmarks.measure import Row, row
from siesta.learner import Siesta

__all__ = ["run"]

HEADS = ("cosine", "discriminant")
CLASSES = 20
_TAUGHT = 400
_LIMIT = "<= 1.2"


def run(image_size: int = 224, rounds: int = 8, block: int = 40) -> Iterator[Row]:
    """Yield the time of each action under a discriminant, relative to the cosine softmax."""
    images = noise(_TAUGHT, image_size)
    learners = [learner_of("efficientnet_lite0", image_size, head=head) for head in HEADS]
    for learner in learners:
        learner.learn_many(images, [f"class {index % CLASSES}" for index in range(_TAUGHT)])
        learner.predict_one(images[0])
    config: dict[str, Any] = {
        "backbone": "efficientnet_lite0",
        "image_size": image_size,
        "classes": CLASSES,
        "samples": _TAUGHT,
    }
    actions: dict[str, Callable[[Siesta], object]] = {
        "learn": lambda learner: learner.learn_one(images[0], "class 0"),
        "predict": lambda learner: learner.predict_one(images[1]),
        "learn_then_predict": lambda learner: (
            learner.learn_one(images[2], "class 2"),
            learner.predict_one(images[3]),
        ),
    }
    for name, action in actions.items():
        cosine, discriminant = _mean_seconds(action, learners, rounds, block)
        yield row(f"{name}_over_cosine", discriminant / cosine, "x", _LIMIT, **config)
    cosine, discriminant = (_first_after_sleep(learner, images[0]) for learner in learners)
    yield row("first_predict_after_sleep", 1e3 * discriminant, "ms", **config, cosine_ms=round(1e3 * cosine, 1))


def _mean_seconds(
    action: Callable[[Siesta], object], learners: list[Siesta], rounds: int, block: int
) -> tuple[float, ...]:
    """Return the mean seconds of an action of each learner; the first call of each turn is not counted."""
    totals: dict[int, list[float]] = {index: [] for index in range(len(learners))}
    for _ in range(rounds):
        for index, learner in enumerate(learners):
            action(learner)
            start = time.perf_counter()
            for _ in range(block):
                action(learner)
            totals[index].append((time.perf_counter() - start) / block)
    return tuple(statistics.mean(seconds) for seconds in totals.values())


def _first_after_sleep(learner: Siesta, image: Any) -> float:
    """Return the seconds of the first question after a sleep."""
    learner.sleep(updates=64, tolerance=1.0)
    start = time.perf_counter()
    learner.predict_one(image)
    return time.perf_counter() - start
