"""The offline learner, what all others are measured by: it sees everything, many times, in any order."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from siesta import resources
from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.budget import Budget
from siesta.contracts import Codes, Ids, OnProgress, Resources
from siesta.errors import BadInput
from siesta.head import Head
from siesta.methods.home import Home, chunks
from siesta.methods.settings import MethodSettings
from siesta.policies import Uniform
from siesta.sleep import DIVERGED, SleepSettings, rehearse
from siesta.store import NewSample

__all__ = ["Offline", "OfflineSettings", "OfflineWhole"]

_PLAN, _NOISE = 13, 14  # purpose numbers of the random streams of a training


class OfflineSettings(MethodSettings):
    """How it trains; as a sleep does, where nothing is said.

    Attributes:
        epochs: How often it goes through all samples.
        rate: The highest of the output; the backbone's own, scaled with the batch, when None.
        layer_decay: Factor on the rate for each layer below the last; the backbone's own when None.
        batch_size: Samples a step.
        momentum: Of SGD.
        weight_decay: Of the optimiser.
    """

    epochs: int = Field(default=50, ge=1)
    rate: float | None = Field(default=None, gt=0)
    layer_decay: float | None = Field(default=None, ge=0, le=1)
    batch_size: int = Field(default=64, ge=1, le=65_536)
    momentum: float = Field(default=0.9, ge=0, le=1)
    weight_decay: float = Field(default=1e-5, ge=0, le=1)


class Offline:
    """Keeps codes, and asleep trains top and output on all of them, each time from the start weights.

    Class vectors start as the means of z under these. The learner in the folder stays as it is, but for its samples:
    what was trained lies beside it. Before the first sleep it answers by the means, later by what it trained last.
    """

    codec: ClassVar[str] = "opq"
    Settings = OfflineSettings

    def __init__(self, folder: Path, settings: OfflineSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self._home = Home(folder, self.codec)
        self._trained: dict[str, Tensor] = dict(self._home.own or {})
        self._start = {name: some.clone() for name, some in self._home.pipeline.backbone.top.state_dict().items()}
        self._stale = True

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Keeps samples."""
        home = self._home
        home.check(codes, labels)
        with home.counter.timed("wake"):
            ...
