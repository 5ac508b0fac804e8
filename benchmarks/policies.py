"""Planning by policy: as many picks as there are samples, on embeddings that cost nothing."""

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

CLASSES, FEATURES, AT_ONCE = 1000, 32, 256


def run(samples: int = 1_281_167) -> Iterator[Row]:
    """Seconds for each policy: reading scores off the embeddings as they pass, then all draws.

    The head's 1000 logits a sample are there in full; z is short, and the network itself does not run.
    """
    rng = np.random.default_rng(0)
    classes = rng.integers(CLASSES, size=samples).astype(np.int32)
    ids, counts = np.arange(samples), rng.integers(9, size=samples).astype(np.int32)
    ready = [[rng.normal(size=(AT_ONCE, width)).astype(np.float32) for width in (FEATURES, CLASSES)] for _ in range(8)]

    def embed(wanted: Ids) -> Iterator[Embedded]:
        for start, (features, logits) in zip(range(0, len(wanted), AT_ONCE), cycle(ready), strict=False):
            some = wanted[start : start + AT_ONCE]
            yield Embedded(some, features[: len(some)], logits[: len(some)], classes[some].astype(np.int64))

    memory = Memory(ids, classes, counts, np.zeros(0, dtype=np.int32), embed)
    config: dict[str, Any] = {"samples": samples, "picks": samples, "classes": CLASSES, "features": FEATURES}
    for name, policy in POLICIES.items():
        start = time.perf_counter()
        picks = policy().picks(memory, np.random.default_rng(1))
        found = len(next(picks))
        planned = time.perf_counter()
        while found < samples:
            found += len(next(picks))
        draws = time.perf_counter() - planned
        yield row("plan_scores", planned - start, "s", policy=name, **config)
        yield row("plan_draws", draws, "s", "below 3", policy=name, **config)
