"""Looking over a method's shoulder: what each of its SGD steps was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from torch import Tensor

from siesta import sleep
from siesta.methods import network


@dataclass(frozen=True)
class Step:
    """Latents and rows of a batch, and the rate of each group of parameters, from the output down."""

    latents: Tensor
    rows: list[int]
    others: list[int]
    rates: list[float]


def record(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """A list that fills while methods learn."""
    steps: list[Step] = []

    def recorded(top: Any, output: Any, optimizer: Any, batch: Any, *rest: Any) -> Any:
        rates = [group["lr"] for group in optimizer.param_groups]
        steps.append(Step(batch.latents.clone(), batch.rows.tolist(), batch.others.tolist(), rates))
        return sleep.train_step(top, output, optimizer, batch, *rest)

    monkeypatch.setattr(network, "train_step", recorded)
    return steps


def unevenness(counts: npt.NDArray[np.int64]) -> float:
    """The chi-square statistic of counts that should all be alike."""
    return float(((counts - counts.mean()) ** 2).sum() / counts.mean())
