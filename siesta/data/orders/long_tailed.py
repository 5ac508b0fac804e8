"""Few classes with many pictures and many with few, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, by_class
from siesta.data.orders.blurry import blurry, revisiting
from siesta.data.orders.class_incremental import class_incremental
from siesta.data.orders.iid import iid
from siesta.data.orders.names import named_steps
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput

__all__ = ["DEFAULT_OVER", "OVER", "long_tailed"]

OVER: dict[str, Callable[..., Stream]] = {
    "class_incremental": class_incremental,
    "iid": iid,
    "blurry": blurry,
    "revisiting": revisiting,
}
DEFAULT_OVER = "class_incremental"

_RANKS, _KEPT = 40, 41  # purposes of random orders


def long_tailed(
    dataset: Dataset,
    seed: int,
    *,
    imbalance: float = 100.0,
    keep: Path | None = None,
    shuffle_ranks: bool = False,
    over: str = DEFAULT_OVER,
    **options: Any,
) -> Stream:
    """Leaves out pictures so that the classes' sizes decline exponentially, or as a list says; then another order.

    The class of rank i of K keeps n * imbalance^(-i / (K - 1)) pictures, rounded down, at least one and at most what
    it has; n is the size of the largest class. That is how long-tailed CIFAR is made (Cao et al., 2019).

    Args:
        dataset: Whose pictures come.
        seed: Whose choices they are.
        imbalance: Size of the first class over that of the last.
        keep: A file of the pictures to keep, one name a line, instead.
        shuffle_ranks: Which classes are large is the seed's; else the dataset's first are.
        over: The order of what is kept, a key of `OVER`.
        **options: Options of that order.
    """
    if keep is None:
        kept = _declining(dataset, seed, imbalance, shuffle_ranks)
    else:
        kept = np.sort(np.concatenate([np.empty(0, np.int64), *named_steps(dataset, keep)]))
    fewer = OVER[over](replace(dataset, train=dataset.train.pick(kept)), seed, **options)
    return replace(fewer, dataset=dataset, indices=kept[fewer.indices])


def _declining(dataset: Dataset, seed: int, imbalance: float, shuffle_ranks: bool) -> npt.NDArray[np.int64]:
    if imbalance < 1:
        raise BadInput(f"imbalance is 1 or more, the largest class over the smallest, not {imbalance}")
    own = list(by_class(dataset.train.labels, len(dataset.classes)))
    ranks = np.arange(len(own))
    if shuffle_ranks:
        ranks = shuffled(ranks, seed, _RANKS)
    most = max(map(len, own))
    kept = []
    for label, (rank, indices) in enumerate(zip(ranks, own, strict=True)):
        wanted = most * imbalance ** (-int(rank) / max(len(own) - 1, 1))
        size = max(int(wanted + 1e-9), 1)  # powers differ in their last bit between machines
        kept.append(shuffled(indices, seed, _KEPT, label)[:size])
    return np.sort(np.concatenate(kept))
