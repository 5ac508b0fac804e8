"""The tour: handwritten digits arrive two classes at a time; sleep against staying awake, on real weights.

The pictures are the 1,797 scanned digits that come with scikit-learn (Alpaydin & Kaynak 1998, UCI).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from siesta.contracts import Progress
from siesta.errors import BadInput
from siesta.learner import IN_MEMORY, Siesta

__all__ = ["BATCH_SIZE", "IMAGE_SIZE", "UPDATES", "Step", "draw", "tour"]

IMAGE_SIZE = 64
UPDATES = 1_500
BATCH_SIZE = 32
_CLASSES_A_STEP = 2
_TRAIN_SHARE = 0.6

Pictures: TypeAlias = list[npt.NDArray[np.uint8]]
Notice: TypeAlias = Callable[[str, float], None]
"""Told what goes on, and how much of the whole tour is done."""


@dataclass(frozen=True)
class Step:
    """Accuracies in percent over all classes seen so far, on pictures that were never taught."""

    classes: tuple[str, ...]
    taught: int
    stored_bytes: int
    awake_only: float
    before_sleep: float
    after_sleep: float


def tour(seed: int = 0, updates: int = UPDATES, notice: Notice = lambda _words, _share: None) -> Iterator[Step]:
    """Teaches two classes, measures, sleeps, measures; until all ten are known."""
    order, pictures, labels, train = _digits(seed)
    steps = len(order) // _CLASSES_A_STEP
    seen: tuple[str, ...] = ()
    with _new_learner(seed) as sleeper, _new_learner(seed) as waker:
        for number in range(steps):
            new = order[number * _CLASSES_A_STEP : (number + 1) * _CLASSES_A_STEP]
            notice(f"awake: learning {' and '.join(new)}", number / steps)
            now = np.flatnonzero(train & np.isin(labels, new))
            now = np.random.default_rng((seed, number)).permutation(now)
            for learner in (sleeper, waker):
                learner.learn_many([pictures[index] for index in now], [labels[index] for index in now])
            seen += new
            asked = np.flatnonzero(~train & np.isin(labels, seen))
            before, awake_only = (_accuracy(learner, pictures, labels, asked) for learner in (sleeper, waker))

            def show(progress: Progress, number: int = number) -> None:
                words = f"asleep: {progress.updates:,} updates, loss {progress.loss:.2f}"
                notice(words, (number + progress.fraction) / steps)

            sleeper.sleep(updates=updates, batch_size=BATCH_SIZE, on_progress=show)
            after = _accuracy(sleeper, pictures, labels, asked)
            facts = sleeper.info()
            taught = sum(entry["taught"] for entry in facts["classes"])
            yield Step(seen, taught, facts["bytes"]["used"], awake_only, before, after)


def _new_learner(seed: int) -> Siesta:
    return Siesta.create(IN_MEMORY, memory="2MB", image_size=IMAGE_SIZE, seed=seed)


def _digits(seed: int) -> tuple[tuple[str, ...], Pictures, npt.NDArray[np.str_], npt.NDArray[np.bool_]]:
    """Class order, pictures, labels, and which pictures are for teaching."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise BadInput("the demo needs scikit-learn: pip install 'siesta-learn[demo]'") from None
    digits = load_digits()
    pictures = list(np.round(digits.images * (255 / 16)).astype(np.uint8))
    rng = np.random.default_rng(seed)
    order = tuple(str(digit) for digit in rng.permutation(10))
    return order, pictures, digits.target.astype(str), rng.random(len(pictures)) < _TRAIN_SHARE


def _accuracy(learner: Siesta, pictures: Pictures, labels: npt.NDArray[np.str_], asked: npt.NDArray[np.int64]) -> float:
    answers = learner.predict_many((pictures[index] for index in asked), top=1)
    right = [answer.label == labels[index] for answer, index in zip(answers, asked, strict=True)]
    return 100 * float(np.mean(right))


def draw(steps: list[Step], path: Path) -> None:
    """Writes the learning curve as a picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BadInput("the demo needs matplotlib: pip install 'siesta-learn[demo]'") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    seen = [len(step.classes) for step in steps]
    when = [moment for count in seen for moment in (count - 0.35, count)]
    accuracy = [value for step in steps for value in (step.before_sleep, step.after_sleep)]
    axes.plot(when, accuracy, color="#2b6cb0", linewidth=2, label="siesta")
    axes.scatter(
        [count - 0.35 for count in seen],
        accuracy[::2],
        color="white",
        edgecolor="#2b6cb0",
        zorder=3,
        label="before sleep",
    )
    axes.scatter(seen, accuracy[1::2], color="#2b6cb0", zorder=3, label="after sleep")
    axes.plot(seen, [step.awake_only for step in steps], color="#c05621", linestyle="--", label="never sleeps")
    axes.set(xlabel="digits taught so far", ylabel="accuracy over all of them (%)", xticks=seen)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower left")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise BadInput(f"the picture could not be written to {path}: {error}") from error
