"""Memories made by hand, with embeddings that are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory, Policy
from siesta.sleep import batches

CHUNK = 16  # samples that an embedding pass gives at once


def memory_of(sizes: Sequence[int]) -> Memory:
    """A memory with that many samples of each class; ids are spread out, classes are not in order."""
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32) * 3 + 1, sizes)
    order = np.random.default_rng(0).permutation(len(classes))
    zeros = np.zeros(len(classes), dtype=np.int32)
    return Memory(np.arange(len(classes), dtype=np.int64)[order] * 5 + 2, classes[order], zeros, zeros[:0])


def embedding(
    memory: Memory,
    features: npt.ArrayLike,
    logits: npt.ArrayLike | None = None,
    asked: list[int] | None = None,
    gone: Sequence[int] = (),
) -> Memory:
    """The memory with embeddings by hand, row by row in its order.

    Args:
        memory: Its ids and classes.
        features: z, (N, D).
        logits: (N, K); zeros if left out.
        asked: Collects every id that is asked for.
        gone: Ids that are stored no more.
    """
    z = np.asarray(features, dtype=np.float32)
    names, rows = np.unique(memory.classes, return_inverse=True)
    scores = np.zeros((len(z), len(names))) if logits is None else np.asarray(logits)
    position = {sample: index for index, sample in enumerate(memory.ids.tolist())}

    def embed(ids: Ids) -> Iterator[Embedded]:
        if asked is not None:
            asked.extend(ids.tolist())
        for start in range(0, len(ids), CHUNK):
            left = [sample for sample in ids[start : start + CHUNK].tolist() if sample not in gone]
            at = np.array([position[sample] for sample in left], dtype=np.int64)
            if left:
                yield Embedded(memory.ids[at], z[at], scores[at].astype(np.float32), rows[at])

    return replace(memory, embed=embed)


def random_embedding(memory: Memory, seed: int = 0, **options: list[int]) -> Memory:
    """Random z and logits: for what holds whatever they are."""
    rng = np.random.default_rng(seed)
    size, classes = len(memory.ids), len(np.unique(memory.classes))
    return embedding(memory, rng.normal(size=(size, 6)), rng.normal(size=(size, classes)), **options)


def draw(policy: Policy, memory: Memory, count: int, seed: int = 0) -> Ids:
    """The first `count` picks, through the batches of the sleep loop."""
    return np.concatenate(list(batches(policy.picks(memory, np.random.default_rng(seed)), 7, count)))


def times(memory: Memory, picks: Ids) -> npt.NDArray[np.int64]:
    """How often each sample of the memory was picked, (N,)."""
    return np.array([(picks == sample).sum() for sample in memory.ids])


def classes_of(memory: Memory, ids: Ids) -> npt.NDArray[np.int32]:
    lookup = dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True))
    return np.array([lookup[sample_id] for sample_id in ids.tolist()], dtype=np.int32)


def assert_balanced(memory: Memory, picks: Ids) -> None:
    """No class is ahead of another by two picks, no sample of a class by two rehearsals."""
    _, per_class = np.unique(classes_of(memory, picks), return_counts=True)
    classes = len(np.unique(memory.classes))
    assert len(per_class) == min(len(picks), classes) and per_class.max() - per_class.min() <= 1
    for class_id in np.unique(memory.classes):
        own = times(memory, picks)[memory.classes == class_id]
        assert own.max() - own.min() <= 1, "a sample repeats before its class was gone through"
