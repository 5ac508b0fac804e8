"""The loop of methods that take one SGD step for each new sample; each of them says what the step is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta.batch import Batch
from siesta.contracts import Codes, OnProgress, Resources
from siesta.head import cosine_logits
from siesta.methods.home import Home
from siesta.methods.network import OnlineNetwork
from siesta.methods.settings import OnlineSettings
from siesta.store import NewSample

__all__ = ["Online"]

_LEARN = 12  # purpose number of the random stream of a step: draws, augmentation, dropout

S = TypeVar("S", bound=OnlineSettings)


class Online(Generic[S]):
    """Learns sample by sample: row for a new class, batch, step, buffer. Nothing happens asleep.

    A method says which codes it eats, whether it keeps samples, and makes a `batch` around each new one; its `rate`
    is fixed unless it says otherwise.
    """

    codec: ClassVar[str]
    buffered: ClassVar[bool] = True

    def __init__(self, folder: Path, settings: S, seed: int) -> None:
        self.settings, self._seed = settings, seed
        self._home = Home(folder, self.codec)
        head = self._home.head()
        self._network = OnlineNetwork(self._home.pipeline.backbone, head, settings, seed)
        self._taught = np.array([head.count(class_id) for class_id in head.class_ids.tolist()], dtype=np.int64)
        if self._home.own is not None:
            own = dict(self._home.own)
            self._taught = own.pop("taught").numpy()
            self._network.load(own)
        self._stale = True  # the engine that answers has older weights than the network that learns
        self._nothing = np.zeros(self._home.pipeline.backbone.features, dtype=np.float32)

    # -- what a method decides ------------------------------------------------------------------------------------

    def batch(self, code: Codes, row: int, rng: np.random.Generator) -> Batch:
        """What a step learns from, given the new sample's codes (1, code_bytes) and row."""
        raise NotImplementedError

    def rate(self, taught: int) -> float:  # noqa: ARG002
        """Of the step for a new sample, `taught` samples of whose class came before it."""
        return self.settings.rate

    # -- what it can use ------------------------------------------------------------------------------------------

    def recall(self, count: int, rng: np.random.Generator) -> tuple[Codes, npt.NDArray[np.int64]]:
        """Distinct samples of the buffer, all alike likely: codes (B, code_bytes) and rows (B,)."""
        store = self._home.store
        ids, class_ids = store.samples.draw(count, rng)
        rows = np.searchsorted([record.id for record in store.classes()], class_ids)
        return store.get(ids)[1], rows

    def decode(self, codes: Codes) -> Tensor:
        """(B, code_bytes) -> (B, d, r, s)."""
        return self._home.pipeline.decode(codes)

    @property
    def stored(self) -> int:
        """Samples in the buffer."""
        return len(self._home.store)

    # -- the method -----------------------------------------------------------------------------------------------

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Learns samples in order, a step each."""
        self._home.check(codes, labels)
        for index, label in enumerate(labels):
            with self._home.counter.timed("wake"):
                self._learn(codes[index : index + 1], label)

    def _learn(self, code: Codes, label: str) -> None:
        home = self._home
        row = home.row_of(label)
        if row == len(self._network):
            self._network.grow()
            self._taught = np.append(self._taught, 0)
        rng = np.random.default_rng((self._seed, _LEARN, home.seen))
        batch = self.batch(code, row, rng)
        self._network.step(batch, self.rate(int(self._taught[row])), rng)
        if self.buffered:
            home.store.add([NewSample(label, code.tobytes(), self._nothing)])
        self._taught[row] += 1
        home.seen += 1
        self._stale = True
        home.counter.spend("wake", looked=1)
        home.trained("wake", len(batch.rows))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Nothing: all was learned awake."""

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """The best labels of each sample, best first."""
        if self._stale:
            self._home.pipeline.load_top(self._network.top_state())
            self._stale = False
        vectors, scale = self._network.head()

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            scores: npt.NDArray[np.float32] = cosine_logits(torch.from_numpy(features), vectors, scale).numpy()
            return scores

        return self._home.answers(codes, top, score)

    def resources(self) -> Resources:
        """What it has cost so far; the optimiser's memory is not counted."""
        return self._home.resources(buffer=self.buffered)

    def save(self) -> None:
        """Puts network, momentum and counts into the folder."""
        self._home.save({**self._network.state(), "taught": torch.from_numpy(self._taught)})

    def close(self) -> None:
        """Lets go of the files."""
        self._home.store.close()
