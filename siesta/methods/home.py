"""A method's folder, opened: the learner that lies in it, its network, and what the method adds to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from siesta import resources
from siesta.codecs import Raw
from siesta.contracts import Codes, Resources
from siesta.errors import BadInput, Damaged
from siesta.head import Head
from siesta.learner import Siesta
from siesta.pipeline import Pipeline
from siesta.store import Store, clean_label

__all__ = ["Home", "chunks", "halfway_file"]

_AT_ONCE = 32  # samples that go through the network together where it does not learn

_FILE = "method.safetensors"

Score = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.floating[Any]]]
"""z (B, D) -> a score for each class in the order of `labels`, the higher the better, (B, K)."""


class Home:
    """What every method needs of its folder, and the file in which it keeps its own state.

    Attributes:
        store: The learner's memory; classes and samples of base initialisation are in it from the start.
        pipeline: From codes to z.
        counter: What was spent so far.
        labels: Classes in the order in which they came; a class's place here is its row in every array.
        seen: Samples learned so far, those of base initialisation left out; random streams start from it.
        own: Tensors that the method gave to `save`; None in a folder that it never saved to.
    """

    def __init__(self, folder: Path, codec: str, learner: Siesta | None = None) -> None:
        """Opens a folder, or takes the learner that is open there."""
        self.store = Store.open(folder) if learner is None else learner.store
        try:
            if self.store.settings["codec"] != codec:
                raise BadInput(f"this method eats codes of '{codec}': start it from a learner with that codec")
            self.pipeline = Pipeline.of(self.store) if learner is None else learner.pipeline
            self._folder = folder
            self._open()
        except BaseException:
            self.store.close()
            raise

    def _open(self) -> None:
        # measured for one class, as their number grows: `spent` and `answers` add the others
        flops = resources.Flops.measure(self.pipeline.backbone, self.pipeline.codec, self.pipeline.image_size, 1)
        self.own, values = _read(self._folder / _FILE)
        if self.own is None:
            self.counter, self.seen = resources.Counter(flops), 0
            self.labels = [record.label for record in self.store.classes()]
        else:
            self.counter = resources.Counter.from_state(flops, values["counter"])
            self.seen, self.labels = values["seen"], values["labels"]
        self._rows = {label: row for row, label in enumerate(self.labels)}

    def save(self, tensors: Mapping[str, Tensor]) -> None:
        """Writes the method's own tensors, and what this object knows, in one go."""
        values = {"counter": self.counter.state(), "seen": self.seen, "labels": self.labels}
        partial = self._folder / f".{_FILE}.partial"
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, partial, metadata={"values": json.dumps(values)})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(self._folder / _FILE)

    # -- classes --------------------------------------------------------------------------------------------------

    def row_of(self, label: str) -> int:
        """The row of a class; a new one gets the next."""
        clean = clean_label(label)
        row = self._rows.setdefault(clean, len(self._rows))
        if row == len(self.labels):
            self.labels.append(clean)
        return row

    def head(self) -> Head:
        """The head that the learner came with, in the order of `labels`; what was taught awake is counted in."""
        snapshot = self.store.snapshot()
        head = Head.from_state(snapshot.weights["head"])
        for recent in snapshot.recent:
            head.set_recent(recent.class_id, torch.from_numpy(recent.total.copy()), recent.count)
        return head

    # -- samples --------------------------------------------------------------------------------------------------

    def check(self, codes: Codes, labels: Sequence[str] | None = None) -> None:
        """Refuses codes that are not (B, code_bytes) bytes, more or fewer labels than codes, and what is no label."""
        wanted = self.store.code_bytes
        if codes.ndim != 2 or codes.shape[1] != wanted or codes.dtype != np.uint8:
            raise BadInput(f"codes are (B, {wanted}) bytes here, not {codes.shape} of {codes.dtype}")
        if labels is not None and len(labels) != len(codes):
            raise BadInput(f"{len(codes)} samples came with {len(labels)} labels: give one for each")
        for label in labels or ():
            clean_label(label)  # refuses what none may be, before anything is learned

    def stored(self) -> Iterator[tuple[Codes, npt.NDArray[np.int64]]]:
        """All stored samples, oldest first, in chunks: codes (B, code_bytes) and rows (B,)."""
        memory = self.store.memory()
        class_ids = np.array([record.id for record in self.store.classes()])
        order = np.argsort(memory.ids)
        for some in chunks(len(order)):
            oldest = order[some]
            yield self.store.get(memory.ids[oldest])[1], np.searchsorted(class_ids, memory.classes[oldest])

    # -- answers and costs ----------------------------------------------------------------------------------------

    def answers(self, codes: Codes, top: int, score: Score) -> list[list[str]]:
        """The best labels of each sample, best first; of equals, the older class."""
        if not self.labels:
            raise BadInput("this method was not taught anything yet: let it learn first")
        if top < 1:
            raise BadInput(f"ask for at least one answer, not {top}")
        self.check(codes)
        best: list[list[str]] = []
        with self.counter.timed("inference"):
            for some in chunks(len(codes)):
                scores = score(self.pipeline.features(codes[some]))
                self.counter.spend("inference", looked=len(scores), scored=scores.size)
                rows = np.argsort(-scores, axis=1, kind="stable")[:, :top]
                best += [[self.labels[row] for row in line] for line in rows.tolist()]
        return best

    def trained(self, phase: str, samples: int) -> None:
        """Counts samples that were learned from; backward, the cosines cost twice as much again."""
        self.counter.spend(phase, trained=samples, scored=3 * samples * (len(self.labels) - 1))

    def resources(self, *, buffer: bool, copies: int = 0, means: int = 0) -> Resources:
        """All that was spent, and what is held now.

        Args:
            buffer: Whether the method needs the stored samples.
            copies: Further copies of all weights.
            means: Bytes of class means and the like.
        """
        pipeline, held = self.pipeline, len(self.store) if buffer else 0
        raw = self.store.settings["codec"] == Raw.name
        weights = resources.parameters(pipeline.backbone, len(self.labels))
        parts = {
            "codes": 0 if raw else resources.codes(held, self.store.code_bytes),
            "images": resources.images(held, pipeline.image_size) if raw else 0,
            "network": resources.network_bytes(weights),
            "copies": resources.copies(copies, weights),
            "codebooks": 0 if raw else resources.codebooks(pipeline.codec),
            "means": means,
        }
        return self.counter.resources(parameters=weights, bytes=parts)


def halfway_file(folder: Path) -> Path:
    """Where a method may keep a step that is on its way: beside its folder, which goes back to the last whole step."""
    return folder.with_name(f"{folder.name}.halfway")


def chunks(samples: int) -> Iterator[slice]:
    """So many samples, a few at a time."""
    for start in range(0, samples, _AT_ONCE):
        yield slice(start, start + _AT_ONCE)


def _read(path: Path) -> tuple[dict[str, Tensor] | None, dict[str, Any]]:
    """What `save` wrote; None and nothing where it never did."""
    if not path.exists():
        return None, {}
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(  # noqa: SIM118
                file.metadata()["values"]
            )
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} is damaged: go on from an older copy of its folder") from error
