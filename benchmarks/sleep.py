"""A whole sleep, store and codec included, against a plain eager training loop on ready tensors of the same top."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from benchmarks.measure import Row, alternate, row
from siesta.learner import IN_MEMORY, Siesta

__all__ = ["run"]

BATCH, STEPS, CLASSES = 64, 4, 20


def run(image_size: int = 224) -> Iterator[Row]:
    """Updates a second of both, and their ratio."""
    learner = Siesta.create(IN_MEMORY, image_size=image_size)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2 * CLASSES, image_size, image_size, 3), dtype=np.uint8)
    learner.learn_many(list(images), [f"class {index % CLASSES}" for index in range(len(images))])
    settings = learner._store.settings
    latents = torch.randn(BATCH, *settings["latent_shape"])
    targets = torch.arange(BATCH) % CLASSES
    plain = nn.Sequential(copy.deepcopy(learner._backbone.top), nn.Linear(1280, CLASSES))
    optimizer = torch.optim.SGD(plain.parameters(), lr=1e-4, momentum=0.9)

    def eager() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(plain(latents), targets).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def asleep() -> None:
        learner.sleep(updates=STEPS * BATCH, batch_size=BATCH, rate=1e-6)

    ours, theirs = alternate(asleep, eager, repeats=4)
    updates = STEPS * BATCH
    config = {"backbone": settings["backbone"], "image_size": image_size, "batch": BATCH, "updates": updates}
    yield row("sleep_rate", updates / ours, "updates/s", **config)
    yield row("sleep_over_eager", theirs / ours, "x", **config)
