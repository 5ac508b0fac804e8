"""Methods that train no layer: they keep statistics of z under the top that they started with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta import resources
from siesta.contracts import Codes, OnProgress, Resources
from siesta.methods.home import Home, chunks
from siesta.methods.settings import MethodSettings

__all__ = ["Floats", "Frozen", "Rows"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


S = TypeVar("S", bound=MethodSettings)


class Frozen(Generic[S]):
    """Running class means of z in float64; a method says how it scores with them, and what else it counts.

    No sample is kept. Those that a base initialisation stored are counted in when a method starts, as part of the
    start that all methods share: their cost is not counted.
    """

    codec: ClassVar[str] = "opq"

    def __init__(self, folder: Path, settings: S, seed: int) -> None:  # noqa: ARG002  # nothing here is random
        self.settings = settings
        self._home = Home(folder, self.codec)
        self._width = self._home.pipeline.backbone.features
        self._totals: Floats
        self._counts: Rows
        self.load(self.blank() if self._home.own is None else self._home.own)
        if self._home.own is None:
            for codes, rows in self._home.stored():
                self._count_in(codes, rows)

    # -- what a method decides ------------------------------------------------------------------------------------

    def scores(self, features: Floats) -> Floats:
        """Z (B, D) -> scores (B, K), the higher the better."""
        raise NotImplementedError

    def take(self, features: Floats, rows: Rows) -> None:
        """Counts z (B, D) of classes (B,) in, in order."""
        np.add.at(self._totals, rows, features)
        np.add.at(self._counts, rows, 1)

    def blank(self) -> dict[str, Tensor]:
        """The state of one that knows nothing."""
        return {"totals": torch.zeros(0, self._width, dtype=torch.float64), "counts": torch.zeros(0, dtype=torch.int64)}

    def state(self) -> dict[str, Tensor]:
        """All statistics."""
        return {"totals": torch.from_numpy(self._totals), "counts": torch.from_numpy(self._counts)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Goes on from what `state()` gave."""
        self._totals, self._counts = state["totals"].numpy(), state["counts"].numpy()

    def means(self) -> Floats:
        """Class means (K, D)."""
        means: Floats = self._totals / self._counts[:, None]
        return means

    # -- the method -----------------------------------------------------------------------------------------------

    def _count_in(self, codes: Codes, rows: Rows) -> None:
        missing = len(self._home.labels) - len(self._counts)
        self._totals = np.concatenate([self._totals, np.zeros((missing, self._width))])
        self._counts = np.concatenate([self._counts, np.zeros(missing, dtype=np.int64)])
        self.take(self._home.pipeline.features(codes).astype(np.float64), rows)

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Counts samples in, in order."""
        home = self._home
        home.check(codes, labels)
        rows = np.array([home.row_of(label) for label in labels], dtype=np.int64)
        with home.counter.timed("wake"):
            for some in chunks(len(codes)):
                self._count_in(codes[some], rows[some])
        home.seen += len(codes)
        home.counter.spend("wake", looked=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Nothing: all was learned awake."""

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """The best labels of each sample, best first."""

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            return self.scores(features.astype(np.float64))

        return self._home.answers(codes, top, score)

    def mean_bytes(self) -> int:
        """What the statistics take."""
        return resources.means(len(self._counts), self._width)

    def resources(self) -> Resources:
        """What it has cost so far."""
        return self._home.resources(buffer=False, means=self.mean_bytes())

    def save(self) -> None:
        """Puts the statistics into the folder."""
        self._home.save(self.state())

    def close(self) -> None:
        """Lets go of the files."""
        self._home.store.close()
