"""Planning time of each policy, for as many draws as there are samples, with ready embeddings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.measure import Row, row
from siesta.contracts import Embedded, Ids, Memory
from siesta.policies import POLICIES

__all__ = ["run"]

CLASSES = 1000
FEATURES = 32
CHUNK = 256


def run(samples: int = 1_281_167) -> Iterator[Row]:
    """Yield the seconds of each policy: for its scores, computed from embeddings, and for all draws.

    All 1000 logits of a sample are present; z is short, and the network itself does not run.
    """
    rng = np.random.default_rng(0)
    classes = rng.integers(CLASSES, size=samples).astype(np.int32)
    ids, counts = np.arange(samples), rng.integers(9, size=samples).astype(np.int32)
    ready = [[rng.normal(size=(CHUNK, width)).astype(np.float32) for width in (FEATURES, CLASSES)] for _ in range(8)]

    def embed(ids: Ids) -> Iterator[Embedded]:
        for start, (features, logits) in zip(range(0, len(ids), CHUNK), cycle(ready), strict=False):
            chunk = ids[start : start + CHUNK]
            yield Embedded(chunk, features[: len(chunk)], logits[: len(chunk)], classes[chunk].astype(np.int64))

    memory = Memory(ids, classes, counts, np.zeros(0, dtype=np.int32), embed)
    config: dict[str, Any] = {"samples": samples, "picks": samples, "classes": CLASSES, "features": FEATURES}
    for name, policy in POLICIES.own.items():
        start = time.perf_counter()
        sample_ids = policy().sample_ids(memory, np.random.default_rng(1))
        drawn = len(next(sample_ids))
        planned = time.perf_counter()
        while drawn < samples:
            drawn += len(next(sample_ids))
        draws = time.perf_counter() - planned
        yield row("plan_scores", planned - start, "s", policy=name, **config)
        yield row("plan_draws", draws, "s", "below 3", policy=name, **config)
