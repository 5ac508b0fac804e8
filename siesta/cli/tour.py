"""The tour behind `siesta demo`: ten digits in steps of two classes, one learner that sleeps and one that never does.

The images are the 1,797 scanned digits that come with scikit-learn (Alpaydin & Kaynak 1998, UCI).
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
from siesta.rng import Purpose, generator

__all__ = ["BATCH_SIZE", "IMAGE_SIZE", "UPDATES", "TourStep", "save_learning_curve", "tour"]

IMAGE_SIZE = 64
UPDATES = 1_500
BATCH_SIZE = 32
_CLASSES_PER_STEP = 2
_TRAIN_SHARE = 0.6

Images: TypeAlias = list[npt.NDArray[np.uint8]]
Labels: TypeAlias = npt.NDArray[np.str_]
Notify: TypeAlias = Callable[[str, float], None]
"""Called with a description of the current activity and the completed share of the tour, 0 to 1."""


@dataclass(frozen=True)
class TourStep:
    """The state after one step; accuracies in percent over all classes so far, on images that were never learned."""

    classes: tuple[str, ...]
    taught: int
    stored_bytes: int
    awake_only: float
    before_sleep: float
    after_sleep: float


def tour(seed: int = 0, updates: int = UPDATES, notify: Notify = lambda _text, _share: None) -> Iterator[TourStep]:
    """Learn two classes, measure, sleep and measure again, until all ten classes are known.

    Args:
        seed: Seed of the class order, the split of the images, and the learners.
        updates: Budget of each sleep.
        notify: Receives the progress.

    Yields:
        The measurements of each step.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, in a sleep too.
    """
    class_order, images, labels, is_train = _digits(seed)
    steps = len(class_order) // _CLASSES_PER_STEP
    seen: tuple[str, ...] = ()
    with _new_learner(seed) as sleeper, _new_learner(seed) as never_asleep:
        for number in range(steps):
            new = class_order[number * _CLASSES_PER_STEP : (number + 1) * _CLASSES_PER_STEP]
            notify(f"awake: learning {' and '.join(new)}", number / steps)
            train = np.flatnonzero(is_train & np.isin(labels, new))
            train = generator(seed, Purpose.TOUR_STEP, number).permutation(train)
            for learner in (sleeper, never_asleep):
                learner.learn_many([images[index] for index in train], [labels[index] for index in train])
            seen += new
            test = np.flatnonzero(~is_train & np.isin(labels, seen))
            before = _accuracy(sleeper, images, labels, test)
            awake_only = _accuracy(never_asleep, images, labels, test)

            def show(progress: Progress, number: int = number) -> None:
                text = f"asleep: {progress.updates:,} updates, loss {progress.loss:.2f}"
                notify(text, (number + progress.fraction) / steps)

            if sleeper.sleep(updates=updates, batch_size=BATCH_SIZE, on_progress=show).interrupted:
                raise KeyboardInterrupt  # `sleep` ends early on Ctrl-C; the tour ends with it
            after = _accuracy(sleeper, images, labels, test)
            info = sleeper.info()
            taught = sum(entry.taught for entry in info.classes)
            yield TourStep(seen, taught, info.bytes.used, awake_only, before, after)


def _new_learner(seed: int) -> Siesta:
    return Siesta.create(IN_MEMORY, memory="2MB", image_size=IMAGE_SIZE, seed=seed)


def _digits(seed: int) -> tuple[tuple[str, ...], Images, Labels, npt.NDArray[np.bool_]]:
    """Return the class order, the images, their labels, and which of them are for training."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise BadInput("the demo needs scikit-learn: pip install 'siesta-learn[demo]'") from None
    digits = load_digits()
    images = list(np.round(digits.images * (255 / 16)).astype(np.uint8))
    rng = generator(seed, Purpose.TOUR_SPLIT)
    class_order = tuple(str(digit) for digit in rng.permutation(10))
    return class_order, images, digits.target.astype(str), rng.random(len(images)) < _TRAIN_SHARE


def _accuracy(learner: Siesta, images: Images, labels: Labels, test: npt.NDArray[np.int64]) -> float:
    """Return the top-1 accuracy in percent on the images at the positions `test`."""
    predictions = learner.predict_many((images[index] for index in test), top=1)
    right = [prediction.label == labels[index] for prediction, index in zip(predictions, test, strict=True)]
    return 100 * float(np.mean(right))


def save_learning_curve(steps: list[TourStep], path: Path) -> None:
    """Write the learning curve as an image file."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BadInput("the demo needs matplotlib: pip install 'siesta-learn[demo]'") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    seen = [len(step.classes) for step in steps]
    positions = [position for count in seen for position in (count - 0.35, count)]
    accuracy = [value for step in steps for value in (step.before_sleep, step.after_sleep)]
    axes.plot(positions, accuracy, color="#2b6cb0", linewidth=2, label="siesta")
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
        raise BadInput(f"the learning curve could not be written to {path}: {error}") from error
