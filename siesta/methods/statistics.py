"""Methods that train no layer: they accumulate statistics of z under the initial top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta.contracts import Codes, OnProgress, Resources
from siesta.methods import cost
from siesta.methods.settings import MethodSettings
from siesta.methods.workspace import Workspace, batches

__all__ = ["Floats", "Rows", "StatisticsMethod"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


S = TypeVar("S", bound=MethodSettings)


class StatisticsMethod(Generic[S]):
    """Running class means of z in float64; a subclass sets `Settings` and implements `scores`; it may accumulate more.

    No samples are stored. Samples that a base initialisation stored are accumulated when a method is created; their
    cost is not counted, because all methods start from it.

    Attributes:
        codec: The codec that the method requires.
        Settings: The class of its settings.
        settings: The settings it was created with.
        workspace: Its folder.
    """

    codec: ClassVar[str] = "opq"
    Settings: ClassVar[type[MethodSettings]]

    def __init__(self, folder: Path, settings: S, seed: int) -> None:  # noqa: ARG002  # nothing here is random
        self.settings = settings
        self.workspace = Workspace(folder, self.codec)
        self._width = self.workspace.pipeline.backbone.features
        self._totals: Floats
        self._counts: Rows
        saved = self.workspace.saved
        self.load(self.empty_state() if saved is None else saved)
        if saved is None:
            for codes, rows in self.workspace.stored_samples():
                self._accumulate(codes, rows)

    # -- implemented or extended by a subclass --------------------------------------------------------------------

    def scores(self, features: Floats) -> Floats:
        """Return a score for each class, the higher the better: (B, D) -> (B, K)."""
        raise NotImplementedError

    def update(self, features: Floats, rows: Rows) -> None:
        """Add z (B, D) of the classes in `rows` (B,) to the statistics, in order."""
        np.add.at(self._totals, rows, features)
        np.add.at(self._counts, rows, 1)

    def empty_state(self) -> dict[str, Tensor]:
        """Return the state before any sample."""
        return {"totals": torch.zeros(0, self._width, dtype=torch.float64), "counts": torch.zeros(0, dtype=torch.int64)}

    def state(self) -> dict[str, Tensor]:
        """Return all statistics."""
        return {"totals": torch.from_numpy(self._totals), "counts": torch.from_numpy(self._counts)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore the statistics from `state()`."""
        self._totals = state["totals"].numpy()
        self._counts = state["counts"].numpy()

    def means(self) -> Floats:
        """Return the class means (K, D)."""
        means: Floats = self._totals / self._counts[:, None]
        return means

    def statistics_bytes(self) -> int:
        """Return the bytes of the statistics."""
        return cost.mean_bytes(len(self._counts), self._width)

    # -- the `Method` protocol ------------------------------------------------------------------------------------

    def _accumulate(self, codes: Codes, rows: Rows) -> None:
        new_classes = len(self.workspace.labels) - len(self._counts)
        self._totals = np.concatenate([self._totals, np.zeros((new_classes, self._width))])
        self._counts = np.concatenate([self._counts, np.zeros(new_classes, dtype=np.int64)])
        self.update(self.workspace.pipeline.features(codes).astype(np.float64), rows)

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Add samples to the statistics, in order."""
        workspace = self.workspace
        workspace.validate(codes, labels)
        rows = np.array([workspace.row_of(label) for label in labels], dtype=np.int64)
        with workspace.counter.timed("wake"):
            for batch in batches(len(codes)):
                self._accumulate(codes[batch], rows[batch])
        workspace.seen += len(codes)
        workspace.counter.add("wake", images=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Do nothing: all learning happens awake."""

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the best labels of each sample, best first."""

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            return self.scores(features.astype(np.float64))

        return self.workspace.rank(codes, top, score)

    def resources(self) -> Resources:
        """Return the costs so far."""
        return self.workspace.resources(buffer=False, means=self.statistics_bytes())

    def save(self) -> None:
        """Write the statistics into the folder."""
        self.workspace.save(self.state())

    def close(self) -> None:
        """Close the files."""
        self.workspace.close()
