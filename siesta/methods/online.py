"""Methods that take one SGD step for each new sample; a subclass decides what the step is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta.backbones.arrays import to_arrays
from siesta.contracts import Codes, OnProgress, Resources
from siesta.methods.network import OnlineNetwork
from siesta.methods.settings import OnlineSettings
from siesta.methods.workspace import Workspace
from siesta.rng import Purpose, generator
from siesta.sleep.batch import Batch
from siesta.sleep.cosine_output import cosine_logits
from siesta.store import NewSample

__all__ = ["OnlineMethod"]

S = TypeVar("S", bound=OnlineSettings)


class OnlineMethod(Generic[S]):
    """Learns sample by sample: a row for a new class, a batch, an SGD step, the buffer. Sleep does nothing.

    A subclass sets `codec`, `Settings` and `buffered` and implements `batch`; it overrides `lr_of` if its learning rate
    changes.

    Attributes:
        codec: The codec that the method requires.
        Settings: The class of its settings.
        buffered: Whether learned samples are stored.
        settings: The settings it was created with.
        workspace: Its folder.
    """

    codec: ClassVar[str]
    Settings: ClassVar[type[OnlineSettings]]
    buffered: ClassVar[bool] = True

    def __init__(self, folder: Path, settings: S, seed: int) -> None:
        self.settings = settings
        self.workspace = Workspace(folder, self.codec)
        self._seed = seed
        head = self.workspace.head()
        self._network = OnlineNetwork(self.workspace.pipeline.backbone, head, settings, seed)
        self._class_counts = np.array([head.count(class_id) for class_id in head.class_ids.tolist()], dtype=np.int64)
        if self.workspace.saved is not None:
            saved = dict(self.workspace.saved)
            self._class_counts = saved.pop("taught").numpy()
            self._network.load(saved)
        self._engine_stale = True  # the engine that predicts has older weights than the network that learns
        self._stored_classes, self._stored_sizes = self.workspace.store.classes.sizes()
        self._no_features = np.zeros(self.workspace.pipeline.spec.features, dtype=np.float32)

    # -- implemented by a subclass --------------------------------------------------------------------------------

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """Return the batch of a step, given the new sample's codes (1, code_bytes) and row."""
        raise NotImplementedError

    def lr_of(self, class_count: int) -> float:  # noqa: ARG002
        """Return the learning rate of the step for a new sample.

        Args:
            class_count: How many samples of its class came before it.
        """
        return self.settings.lr

    # -- for a subclass to use ------------------------------------------------------------------------------------

    def draw_stored(self, count: int, rng: np.random.Generator) -> tuple[Codes, npt.NDArray[np.int64]]:
        """Draw distinct samples of the buffer, uniformly: codes (B, code_bytes) and rows (B,)."""
        samples = self.workspace.store.samples
        ids, rows = samples.draw(count, rng, self._stored_classes, self._stored_sizes)
        return samples.get(ids)[1], rows

    def decode(self, codes: Codes) -> Tensor:
        """Return the latents of codes: (B, code_bytes) -> (B, d, r, s) or (B, N, d)."""
        return self.workspace.pipeline.decode(codes)

    @property
    def stored(self) -> int:
        """Number of samples in the buffer."""
        return len(self.workspace.store)

    # -- the `Method` protocol ------------------------------------------------------------------------------------

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Learn samples in order, a step each."""
        self.workspace.validate(codes, labels)
        for index, label in enumerate(labels):
            with self.workspace.counter.timed("wake"):
                self._learn(codes[index : index + 1], label)

    def _learn(self, code: Codes, label: str) -> None:
        workspace = self.workspace
        row = workspace.row_of(label)
        if row == len(self._network):
            self._network.add_class()
            self._class_counts = np.append(self._class_counts, 0)
        rng = generator(self._seed, Purpose.METHOD_STEP, workspace.seen)
        batch = self.batch(code, row, rng)
        self._network.step(batch, self.lr_of(int(self._class_counts[row])), rng)
        if self.buffered:
            self._store(NewSample(label, code.tobytes(), self._no_features))
        self._class_counts[row] += 1
        workspace.seen += 1
        self._engine_stale = True
        workspace.counter.add("wake", images=1)
        workspace.count_updates("wake", len(batch.rows))

    def _store(self, sample: NewSample) -> None:
        """Add a sample to the buffer; classes are counted here, so that no step lists those of the store."""
        before = self.stored
        (added,) = self.workspace.store.add([sample])
        position = int(np.searchsorted(self._stored_classes, added.class_id))
        if self.stored == before:  # another sample was evicted, of a class that only the store knows
            self._stored_classes, self._stored_sizes = self.workspace.store.classes.sizes()
        elif position == len(self._stored_classes):
            self._stored_classes = np.append(self._stored_classes, added.class_id)
            self._stored_sizes = np.append(self._stored_sizes, 1)
        else:
            self._stored_sizes[position] += 1

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Do nothing: all learning happens awake."""

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the best labels of each sample, best first."""
        if self._engine_stale:
            self.workspace.pipeline.load_top(to_arrays(self._network.top_state()))
            self._engine_stale = False
        vectors, scale = self._network.head()

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            scores: npt.NDArray[np.float32] = cosine_logits(torch.from_numpy(features), vectors, scale).numpy()
            return scores

        return self.workspace.rank(codes, top, score)

    def resources(self) -> Resources:
        """Return the costs so far; momentum buffers are not counted."""
        return self.workspace.resources(buffer=self.buffered)

    def state(self) -> dict[str, Tensor]:
        """Return the weights, momentum and class counts."""
        return {**self._network.state(), "taught": torch.from_numpy(self._class_counts)}

    def save(self) -> None:
        """Write the state into the folder."""
        self.workspace.save(self.state())

    def close(self) -> None:
        """Close the files."""
        self.workspace.close()
