"""Training time of the methods of the comparison for the same updates, in one process and on the same images.

Each method learns new images and trains as its settings for ImageNet say: SIESTA and its variants in batches of 64 in a
sleep, REMIND and ER in a step for each image with nine stored ones. All start from a memory that is filled already.
Encoding of images is not included, since experiments do it once for all methods. The published ratios are those of
whole trainings on a GPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.learners import noise
from benchmarks.measure import Row, alternate, row
from siesta.head.kinds import COSINE
from siesta.learner import Siesta
from siesta.methods import METHODS

__all__ = ["run"]

BATCH = 64
REHEARSALS = 9
CLASSES = 20

SETTINGS: dict[str, dict[str, Any]] = {
    "siesta": {"batch_size": BATCH},
    "siesta_paper": {"batch_size": BATCH},
    "remind": {"rehearsals": REHEARSALS, "lr": 1e-6, "final_lr": None},
    "er": {"rehearsals": REHEARSALS, "lr": 1e-6},
    "siesta_er": {"batch_size": BATCH},
    "offline": {"batch_size": BATCH, "epochs": REHEARSALS + 1},
    "offline_whole": {"batch_size": BATCH, "epochs": REHEARSALS + 1},
}
"""Settings by method; steps have a learning rate that keeps the weights as they are, so that no turn diverges."""

RATIOS = (
    ("remind", "siesta", "3.4 in the paper"),
    ("remind", "siesta_paper", "3.4 in the paper"),
    ("er", "siesta_er", "3 in the paper"),
)
"""The slower method, the faster one, and how many times faster it is published to be."""


def run(image_size: int = 224, images: int = 64, repeats: int = 3) -> Iterator[Row]:
    """Yield the seconds of a turn of each method, all of the same updates, and ratios beside the published ones.

    Args:
        image_size: Side of the images.
        images: Images that a turn learns, or of which the offline learners pass over all in each epoch; there are
            `REHEARSALS` + 1 updates for each.
        repeats: Turns of each method that count.
    """
    updates = images * (REHEARSALS + 1)
    config: dict[str, Any] = {
        "image_size": image_size,
        "updates": updates,
        "batch": BATCH,
        "rehearsals": REHEARSALS,
    }
    with tempfile.TemporaryDirectory() as folder:
        turns = [_Turn(name, Path(folder), image_size, images, repeats) for name in SETTINGS]
        times = alternate(*turns, repeats=repeats)
        for turn in turns:
            turn.close()
    seconds = dict(zip(SETTINGS, times, strict=True))
    for name, value in seconds.items():
        yield row("training_seconds", value, "s", method=name, **config)
    for slower, faster, published in RATIOS:
        ratio = seconds[slower] / seconds[faster]
        yield row("training_speedup", ratio, "x", published, method=faster, over=slower, **config)


class _Turn:
    """One method on a learner of its own, whose memory is filled; a call is a turn."""

    def __init__(self, name: str, folder: Path, image_size: int, images: int, repeats: int) -> None:
        spec = METHODS[name]
        values = dict(SETTINGS[name])
        if "updates" in spec.settings_class.model_fields:
            values["updates"] = images * (REHEARSALS + 1)
        settings = spec.settings(values)
        path = folder / f"{name}.siesta"
        self._labels = [f"class {index % CLASSES}" for index in range(images)]
        self._offline = spec.offline
        self._updates = images * (REHEARSALS + 1)
        with Siesta.create(
            path,
            memory=f"{images * (repeats + 2)} samples",
            codec=spec.codec,
            image_size=image_size,
            head=str(getattr(settings, "head", COSINE)),
            hold_out=False,
        ) as learner:
            self._codes = learner.pipeline.encode(noise(images, image_size))
            learner.learn_encoded(self._codes, self._labels)
        self._method = spec.make(path, settings, 0)

    def __call__(self) -> None:
        """Learn new images and sleep; an offline learner trains on those that it has."""
        before = self._method.resources().updates
        if not self._offline:
            self._method.learn_many(self._codes, self._labels)
        self._method.sleep()
        updates = self._method.resources().updates - before
        if updates != self._updates:
            raise ValueError(f"a turn has {self._updates} updates, not {updates}")

    def close(self) -> None:
        """Close the files."""
        self._method.close()
