"""The folder of a method: the learner it starts from, its pipeline, and the state that the method adds to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from siesta.contracts import Codes, Resources, Selection
from siesta.errors import BadInput, Damaged
from siesta.files import replace_file
from siesta.head import Head
from siesta.methods import cost
from siesta.pipeline import Pipeline
from siesta.store import Store, clean_label

__all__ = ["Score", "Workspace", "batches", "checkpoint_file"]

_BATCH_SIZE = 32  # samples of a forward pass that does not train

_TINY = 1e-12  # shortest z that is divided by its length

_FILE = "method.safetensors"

Score = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.floating[Any]]]
"""z (B, D) -> a score for each class in the order of `labels`, the higher the better, (B, K)."""

ScoreCodes = Callable[[Codes], npt.NDArray[np.floating[Any]]]
"""Codes (B, code_bytes) -> a score for each of the first classes in the order of `labels`, (B, K)."""


class Workspace:
    """What every method needs of its folder, and the file that keeps the method's own state.

    Attributes:
        store: The learner's store; it holds the classes and samples of the base initialisation from the start.
        pipeline: Turns codes into z.
        counter: The costs so far.
        labels: Classes in order of arrival; the index of a class is its row in every array.
        seen: Number of samples learned so far without those of the base initialisation; random streams depend on it.
        saved: Tensors of the last `save`; None if the folder has none.
    """

    def __init__(
        self, folder: Path, codec: str, load_pipeline: Callable[[Store], Pipeline] = Pipeline.from_store
    ) -> None:
        """Open a folder.

        Args:
            folder: A learner folder.
            codec: Codec that the method requires.
            load_pipeline: Loads the pipeline from the open store.
        """
        self.store = Store.open(folder)
        try:
            actual = self.store.settings["codec"]
            if actual != codec:
                raise BadInput(
                    f"method requires codec '{codec}', but the learner uses '{actual}': "
                    f"start it from a learner with codec '{codec}'"
                )
            self.pipeline = load_pipeline(self.store)
            self._folder = folder
            self._load()
        except BaseException:
            self.store.close()
            raise

    def _load(self) -> None:
        # measured for one class, as their number grows: `rank` and `count_updates` add the others
        flops = cost.Flops.measure(self.pipeline.backbone, self.pipeline.codec, self.pipeline.image_size, 1)
        self.saved, values = _read(self._folder / _FILE)
        if self.saved is None:
            self.counter = cost.CostCounter(flops)
            self.seen = 0
            self.labels = [record.label for record in self.store.classes.all()]
        else:
            self.counter = cost.CostCounter.from_state(flops, values["counter"])
            self.seen = values["seen"]
            self.labels = values["labels"]
        self._rows = {label: row for row, label in enumerate(self.labels)}

    def save(self, tensors: Mapping[str, Tensor]) -> None:
        """Write the method's tensors with costs, labels and sample count, in one atomic replacement."""
        values = {"counter": self.counter.state(), "seen": self.seen, "labels": self.labels}
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        replace_file(self._folder / _FILE, save(contiguous, metadata={"values": json.dumps(values)}))

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # -- classes --------------------------------------------------------------------------------------------------

    def row_of(self, label: str) -> int:
        """Return the row of a class; a new class gets the next one."""
        clean = clean_label(label)
        row = self._rows.setdefault(clean, len(self._rows))
        if row == len(self.labels):
            self.labels.append(clean)
        return row

    def head(self) -> Head:
        """Return the learner's head, class means updated, with rows in the order of `labels`."""
        snapshot = self.store.snapshot()
        head = Head.from_state(snapshot.weights["head"])
        for recent in snapshot.recent:
            head.set_recent(recent.class_id, recent.total, recent.count)
        return head

    # -- samples --------------------------------------------------------------------------------------------------

    def validate(self, codes: Codes, labels: Sequence[str] | None = None) -> None:
        """Raise `BadInput` unless codes are (B, code_bytes) uint8 and there is a valid label for each, if any."""
        expected = self.store.code_bytes
        if codes.ndim != 2 or codes.shape[1] != expected or codes.dtype != np.uint8:
            found = f"{codes.shape} of {codes.dtype}"
            raise BadInput(f"codes must be (B, {expected}) of uint8, not {found}: encode images first")
        if labels is not None and len(labels) != len(codes):
            raise BadInput(f"{len(codes)} samples came with {len(labels)} labels: give one for each")
        for label in labels or ():
            clean_label(label)  # raises before anything is learned

    def validate_query(self, codes: Codes, top: int) -> None:
        """Raise `BadInput` unless there are classes to choose from, `top` is positive and the codes are valid."""
        if not self.labels:
            raise BadInput("the method has not learned any class yet: learn some samples first")
        if top < 1:
            raise BadInput(f"top must be at least 1, not {top}: give the number of labels to return")
        self.validate(codes)

    def stored_samples(self) -> Iterator[tuple[Codes, npt.NDArray[np.int64]]]:
        """Yield all stored samples in batches, oldest first: codes (B, code_bytes) and rows (B,)."""
        memory = self.store.samples.memory()
        class_ids = np.array([record.id for record in self.store.classes.all()])
        order = np.argsort(memory.ids)
        for batch in batches(len(order)):
            oldest = order[batch]
            yield self.store.samples.get(memory.ids[oldest])[1], np.searchsorted(class_ids, memory.classes[oldest])

    def rank_stored(self, select: Selection, rng: np.random.Generator) -> None:
        """Rank the stored samples of each class by their z of length one; the memory evicts the last of them first."""
        all_ids, classes = self.store.samples.after(0, len(self.store))  # oldest first, held-out samples included
        ranked = [np.zeros(0, dtype=np.int64)]
        with self.counter.timed("sleep"):
            for class_id in np.unique(classes).tolist():
                ids = all_ids[classes == class_id]
                features = np.concatenate(
                    [self.pipeline.features(self.store.samples.get(ids[batch])[1]) for batch in batches(len(ids))]
                )
                lengths = np.linalg.norm(features, axis=1, keepdims=True)
                ranked.append(ids[select(features / np.maximum(lengths, _TINY), len(ids), rng)])
            self.store.rank(np.concatenate(ranked))
        self.counter.add("sleep", codes=len(all_ids))

    # -- answers and costs ----------------------------------------------------------------------------------------

    def rank(self, codes: Codes, top: int, score: Score) -> list[list[str]]:
        """Return the labels with the highest scores for each sample, best first; of equal scores, the older class."""

        def score_codes(batch: Codes) -> npt.NDArray[np.floating[Any]]:
            scores = score(self.pipeline.features(batch))
            self.counter.add("inference", images=len(scores), scores=scores.size)
            return scores

        return self.rank_codes(codes, top, score_codes)

    def rank_codes(self, codes: Codes, top: int, score: ScoreCodes) -> list[list[str]]:
        """Return the same for a method with a network of its own, which counts its FLOPs itself."""
        self.validate_query(codes, top)
        ranking: list[list[str]] = []
        with self.counter.timed("inference"):
            for batch in batches(len(codes)):
                scores = score(codes[batch])
                best_rows = np.argsort(-scores, axis=1, kind="stable")[:, :top]
                ranking += [[self.labels[row] for row in rows] for rows in best_rows.tolist()]
        return ranking

    def count_updates(self, phase: str, updates: int) -> None:
        """Count training updates with the cosines of all classes, whose backward pass costs twice the forward pass."""
        self.counter.add(phase, updates=updates, scores=3 * updates * (len(self.labels) - 1))

    def resources(self, *, buffer: bool, copies: int = 0, means: int = 0) -> Resources:
        """Return the costs so far and the memory in use.

        Args:
            buffer: Whether the method needs the stored samples.
            copies: Number of further copies of all weights.
            means: Bytes of class means and other statistics.
        """
        samples = len(self.store) if buffer else 0
        codec = self.pipeline.codec
        stored_bytes = cost.code_bytes(samples, self.store.code_bytes)
        parameters = cost.parameter_count(self.pipeline.backbone, len(self.labels))
        parts = {
            "codes": 0 if codec.cut == 0 else stored_bytes,
            "images": stored_bytes if codec.cut == 0 else 0,
            "network": cost.network_bytes(parameters),
            "copies": cost.copy_bytes(copies, parameters),
            "codebooks": cost.codebook_bytes(codec) if codec.needs_fit else 0,
            "means": means,
        }
        return self.counter.resources(parameters=parameters, bytes=parts)


def checkpoint_file(folder: Path) -> Path:
    """Return where a method may keep an unfinished step: beside its folder, which is reset to the last whole step."""
    return folder.with_name(f"{folder.name}.halfway")


def batches(samples: int) -> Iterator[slice]:
    """Yield slices that cover so many samples, a forward pass each."""
    for start in range(0, samples, _BATCH_SIZE):
        yield slice(start, start + _BATCH_SIZE)


def _read(path: Path) -> tuple[dict[str, Tensor] | None, dict[str, Any]]:
    """Return what `save` wrote; None and no values where it was never called."""
    if not path.exists():
        return None, {}
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(  # noqa: SIM118
                file.metadata()["values"]
            )
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} is damaged: resume from an older checkpoint") from error
