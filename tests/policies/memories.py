"""Synthetic memories with known embeddings, and counts of what a policy draws from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory, Policy
from siesta.sleep.batch import id_batches

CHUNK = 16  # samples in each chunk of embeddings


def memory_of(sizes: Sequence[int]) -> Memory:
    """Return a memory with so many samples of each class; ids have gaps, classes are shuffled."""
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32) * 3 + 1, sizes)
    order = np.random.default_rng(0).permutation(len(classes))
    zeros = np.zeros(len(classes), dtype=np.int32)
    return Memory(np.arange(len(classes), dtype=np.int64)[order] * 5 + 2, classes[order], zeros, zeros[:0])


def embedding(
    memory: Memory,
    features: npt.ArrayLike,
    logits: npt.ArrayLike | None = None,
    requested: list[int] | None = None,
    removed: Sequence[int] = (),
) -> Memory:
    """Return the memory with these embeddings, a row for each of its samples.

    Args:
        memory: Its ids and classes.
        features: z, (N, D).
        logits: (N, K); zeros if left out.
        requested: Collects every id that is to be embedded.
        removed: Ids that are no longer stored.
    """
    z = np.asarray(features, dtype=np.float32)
    names, rows = np.unique(memory.classes, return_inverse=True)
    scores = np.zeros((len(z), len(names))) if logits is None else np.asarray(logits)
    position = {sample: index for index, sample in enumerate(memory.ids.tolist())}

    def embed(ids: Ids) -> Iterator[Embedded]:
        if requested is not None:
            requested.extend(ids.tolist())
        for start in range(0, len(ids), CHUNK):
            left = [sample for sample in ids[start : start + CHUNK].tolist() if sample not in removed]
            at = np.array([position[sample] for sample in left], dtype=np.int64)
            if left:
                yield Embedded(memory.ids[at], z[at], scores[at].astype(np.float32), rows[at])

    return replace(memory, embed=embed)


def random_embedding(memory: Memory, seed: int = 0, **options: list[int]) -> Memory:
    """Return the memory with random z and logits."""
    rng = np.random.default_rng(seed)
    size, classes = len(memory.ids), len(np.unique(memory.classes))
    return embedding(memory, rng.normal(size=(size, 6)), rng.normal(size=(size, classes)), **options)


def draw(policy: Policy, memory: Memory, count: int, seed: int = 0) -> Ids:
    """Return the first `count` ids, in batches of the sleep loop."""
    return np.concatenate(list(id_batches(policy.sample_ids(memory, np.random.default_rng(seed)), 7, count)))


def draw_counts(memory: Memory, sample_ids: Ids) -> npt.NDArray[np.int64]:
    """Return how often each sample of the memory was drawn, (N,)."""
    return np.array([(sample_ids == sample).sum() for sample in memory.ids])


def classes_of(memory: Memory, ids: Ids) -> npt.NDArray[np.int32]:
    """Return the class of each id."""
    lookup = dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True))
    return np.array([lookup[sample_id] for sample_id in ids.tolist()], dtype=np.int32)


def assert_balanced(memory: Memory, sample_ids: Ids) -> None:
    """Check that the draws of two classes, and of two samples of a class, differ by at most one."""
    _, per_class = np.unique(classes_of(memory, sample_ids), return_counts=True)
    classes = len(np.unique(memory.classes))
    assert len(per_class) == min(len(sample_ids), classes) and per_class.max() - per_class.min() <= 1
    for class_id in np.unique(memory.classes):
        own = draw_counts(memory, sample_ids)[memory.classes == class_id]
        assert own.max() - own.min() <= 1, "a sample repeats before all samples of its class were drawn"
