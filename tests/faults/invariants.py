"""What must hold of a learner after a crash, a fault or damage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from siesta.learner import Siesta
from siesta.learner.sums import wrong_statistics
from siesta.service.tokens import TokenStore
from siesta.store import StoredStatistics
from tests.faults.operations import open_learner, picture
from tests.stores import store_of

__all__ = ["State", "state_of", "unsound"]

_LEFTOVERS = ("**/.*.next", "generations/.*", "to_be_wiped", "store.sqlite.salvaged*", "store.sqlite.copy*")


@dataclass(frozen=True)
class State:
    """What a learner has learned; two states are equal bit for bit.

    Attributes:
        samples: Label and codes of each sample.
        classes: Numbers of samples that were ever taught and are stored, by label.
        sums: Count and sum of the samples since the last sleep, by label.
        generation: Number of the active generation.
        tensors: Weights, head and codec.
        thumbnails: Thumbnails by sample.
        rejections: Label and codes of each rejection.
        tokens: Scopes of the tokens of the service.
        answers: Labels and scores for a few pictures.
        statistics: Sums of the head, and the samples counted since.
    """

    samples: Mapping[int, tuple[str, bytes]]
    classes: Mapping[str, tuple[int, int]]
    sums: Mapping[str, tuple[int, bytes]]
    generation: int
    tensors: Mapping[str, bytes]
    thumbnails: Mapping[int, bytes | None]
    rejections: Mapping[int, tuple[str, bytes]]
    tokens: list[str]
    answers: list[Any]
    statistics: Mapping[str, bytes]

    def difference(self, other: State) -> str:
        """Return the names of the parts that differ."""
        names = [field.name for field in fields(self)]
        return ", ".join(name for name in names if getattr(self, name) != getattr(other, name))


def state_of(learner: Siesta) -> State:
    """Return the state of an open learner."""
    store = store_of(learner)
    snapshot = store.snapshot()
    labels = {record.id: record.label for record in snapshot.classes}
    ids = store.samples.ids()
    present, codes = store.samples.get(ids)
    assert present.all(), "a sample has no codes"
    groups = {**snapshot.weights, "codec": store.constants.read("codec")}
    thumbnails = [sample for samples in store.thumbnails.by_class().values() for sample in samples]
    path = store.path
    return State(
        samples={
            sample: (labels[store.samples.class_of(sample)], code.tobytes())
            for sample, code in zip(ids.tolist(), codes, strict=True)
        },
        classes={record.label: (record.taught, record.stored) for record in snapshot.classes},
        sums={recent.label: (recent.count, recent.total.tobytes()) for recent in snapshot.recent},
        generation=snapshot.generation.number,
        tensors={
            f"{group}.{name}": tensor.tobytes() for group, tensors in groups.items() for name, tensor in tensors.items()
        },
        thumbnails={sample: store.thumbnails.get(sample) for sample in thumbnails},
        rejections={
            each: (labels[snapshot.rejected[each]], codes)
            for each, codes in store.rejections.get(snapshot.rejected).items()
        },
        tokens=[] if path is None else [token.scope for token in TokenStore(path).all()],
        answers=learner.predict_many([picture(number) for number in (3, 12, 99)]) if labels else [],
        statistics=_statistics(snapshot.statistics),
    )


def _statistics(stored: StoredStatistics) -> dict[str, bytes]:
    arrays = {} if stored.arrays is None else {name: array.tobytes() for name, array in stored.arrays.items()}
    return arrays | {name: value.tobytes() for name, value in vars(stored.since).items()}


def unsound(learner: Siesta) -> Iterator[str]:
    """Yield what is wrong with sums that can be computed again from stored samples, and files that should be gone."""
    store = store_of(learner)
    snapshot = store.snapshot()
    ids, classes = store.samples.after(snapshot.generation.since, 1000)
    features = learner.pipeline.features(store.samples.get(ids)[1]) if len(ids) else np.zeros((0, 1))
    for recent in snapshot.recent:
        of_class = features[classes == recent.class_id]
        if len(of_class) == recent.count and not np.allclose(of_class.sum(axis=0), recent.total, rtol=1e-3, atol=1e-3):
            yield f"the sum of class '{recent.label}' differs from that of its samples"
    yield from (finding.words for finding in wrong_statistics(store, snapshot, full=True))
    path = store.path
    assert path is not None
    for pattern in _LEFTOVERS:
        yield from (f"{found.relative_to(path)} is left" for found in path.glob(pattern))


def opened(path: Path) -> State:
    """Return the state of a learner on disk, which is opened to learn."""
    with open_learner(path) as learner:
        return state_of(learner)
