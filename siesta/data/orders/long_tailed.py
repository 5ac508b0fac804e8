"""A long-tailed class distribution, few classes with many images and many with few, in any other order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, indices_by_class
from siesta.data.orders.blurry import blurry, revisiting
from siesta.data.orders.class_incremental import class_incremental
from siesta.data.orders.iid import iid
from siesta.data.orders.names import read_image_list
from siesta.data.shuffling import shuffled
from siesta.data.stream import Stream
from siesta.errors import BadInput
from siesta.rng import Purpose

__all__ = ["DEFAULT_INNER_ORDER", "INNER_ORDERS", "long_tailed"]

INNER_ORDERS: dict[str, Callable[..., Stream]] = {
    "class_incremental": class_incremental,
    "iid": iid,
    "blurry": blurry,
    "revisiting": revisiting,
}
DEFAULT_INNER_ORDER = "class_incremental"


def long_tailed(
    dataset: Dataset,
    seed: int,
    *,
    imbalance: float = 100.0,
    keep: Path | None = None,
    shuffle_ranks: bool = False,
    over: str = DEFAULT_INNER_ORDER,
    **options: Any,
) -> Stream:
    """Leave out images so that class sizes decline exponentially, or as a list names them; then apply another order.

    The class of rank i of K keeps n * imbalance^(-i / (K - 1)) images, rounded down, at least one and at most all;
    n is the size of the largest class. Long-tailed CIFAR is made in this way (Cao et al., 2019).

    Args:
        dataset: The data set.
        seed: Determines all random choices.
        imbalance: Size of the first class divided by that of the last.
        keep: File of the images to keep instead, one name in each line.
        shuffle_ranks: Shuffle which classes are large, instead of taking the data set's first.
        over: The order of the images that are kept, a key of `INNER_ORDERS`.
        **options: Options of that order.
    """
    if keep is None:
        kept = _declining(dataset, seed, imbalance, shuffle_ranks)
    else:
        kept = np.sort(np.concatenate([np.empty(0, np.int64), *read_image_list(dataset, keep)]))
    inner = INNER_ORDERS[over](replace(dataset, train=dataset.train.subset(kept)), seed, **options)
    return replace(inner, dataset=dataset, indices=kept[inner.indices])


def _declining(dataset: Dataset, seed: int, imbalance: float, shuffle_ranks: bool) -> npt.NDArray[np.int64]:
    if imbalance < 1:
        raise BadInput(f"imbalance, the largest class over the smallest, must be 1 or more, not {imbalance}")
    by_class = list(indices_by_class(dataset.train.labels, len(dataset.classes)))
    ranks = np.arange(len(by_class))
    if shuffle_ranks:
        ranks = shuffled(ranks, seed, Purpose.TAIL_RANKS)
    largest = max(map(len, by_class))
    kept = []
    for label, (rank, indices) in enumerate(zip(ranks, by_class, strict=True)):
        exact = largest * imbalance ** (-int(rank) / max(len(by_class) - 1, 1))
        size = max(int(exact + 1e-9), 1)  # the last bit of a power differs between machines
        kept.append(shuffled(indices, seed, Purpose.TAIL_SAMPLES, label)[:size])
    return np.sort(np.concatenate(kept))
