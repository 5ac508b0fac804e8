"""Records of what a method trains on: the batches of its SGD steps, or the samples of its rehearsal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from torch import Tensor

from siesta.contracts import Ids, Memory
from siesta.methods import network, offline
from siesta.sleep import loop


@dataclass(frozen=True)
class Step:
    """Latents and rows of a batch, and the learning rate of each parameter group, from the output down."""

    latents: Tensor
    rows: list[int]
    second_rows: list[int]
    rates: list[float]


def record_steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Return a list to which every step of an online method is appended."""
    steps: list[Step] = []

    def recorded(top: Any, output: Any, optimizer: Any, batch: Any, *rest: Any) -> Any:
        rates = [group["lr"] for group in optimizer.param_groups]
        steps.append(Step(batch.latents.clone(), batch.rows.tolist(), batch.second_rows.tolist(), rates))
        return loop.train_step(top, output, optimizer, batch, *rest)

    monkeypatch.setattr(network, "train_step", recorded)
    return steps


@dataclass
class Rehearsal:
    """The samples that the rehearsal loop loaded, and its seed; as a policy it yields the same samples again."""

    loaded: list[int] = field(default_factory=list)
    seed: int = 0

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yield the recorded ids."""
        del memory, rng
        yield np.array(self.loaded, dtype=np.int64)


def record_rehearsal(monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    """Return a record of the trainings of an offline method."""
    rehearsal = Rehearsal()

    def recorded(top: Any, head: Any, samples: loop.Samples, budget: Any, settings: Any, *rest: Any) -> Any:
        def recorded_load(ids: Ids) -> Any:
            rehearsal.loaded.extend(ids.tolist())
            return samples.load(ids)

        rehearsal.seed = settings.seed
        return loop.rehearse(top, head, replace(samples, load=recorded_load), budget, settings, *rest)

    monkeypatch.setattr(offline, "rehearse", recorded)
    return rehearsal


def chi_square(counts: npt.NDArray[np.int64]) -> float:
    """Return the chi-square statistic of counts that should be equal."""
    return float(((counts - counts.mean()) ** 2).sum() / counts.mean())
