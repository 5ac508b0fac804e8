"""Speed of a sleep, store and codec included, relative to an eager training loop on ready tensors of the same top."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from benchmarks.learners import NETWORKS, learner_of, noise
from benchmarks.measure import Row, alternate, row
from siesta.learner import Siesta

__all__ = ["run"]

BATCH = 64
STEPS = 8
CLASSES = 20
CASES = (*((name, 224) for name in NETWORKS), (NETWORKS[0], 112))


def run(cases: Sequence[tuple[str, int]] = CASES) -> Iterator[Row]:
    """Yield updates a second and their ratio, for each network and image size."""
    for name, image_size in cases:
        learner = learner_of(name, image_size)
        labels = [f"class {index % CLASSES}" for index in range(2 * CLASSES)]
        learner.learn_many(noise(len(labels), image_size), labels)
        yield from _comparison(learner, {"backbone": name, "image_size": image_size, "batch": BATCH})


def _comparison(learner: Siesta, config: dict[str, Any]) -> Iterator[Row]:
    latents = torch.randn(BATCH, *learner.pipeline.latent_shape)
    targets = torch.arange(BATCH) % CLASSES
    plain = nn.Sequential(
        copy.deepcopy(learner.pipeline.backbone.top), nn.Linear(learner.pipeline.backbone.features, CLASSES)
    )
    optimizer = torch.optim.SGD(plain.parameters(), lr=1e-6, momentum=0.9)

    def eager() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(plain(latents), targets).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def asleep() -> None:
        learner.sleep(updates=STEPS * BATCH, batch_size=BATCH, lr=1e-6)

    ours, theirs = alternate(asleep, eager, repeats=3)
    updates = STEPS * BATCH
    yield row("sleep_rate", updates / ours, "updates/s", **config)
    yield row("sleep_over_eager", theirs / ours, "x", ">= 1.3", **config)
