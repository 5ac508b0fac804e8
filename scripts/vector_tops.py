"""Learn, sleep and predict with tops over vectors of several depths and rates; write a row for each trial.

    python -m scripts.vector_tops [--vectors NAME=FILE.npz ...]

The digits of scikit-learn, 64 pixels as a vector, are always there; a file has `vectors` (N, d) and `labels` (N,). Of
the vectors of classes with at least 15, three fifths are learned, and a fifth each chooses (val) and reports (test).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.datasets import load_digits

from siesta import Siesta
from siesta.backbones import VECTOR_NETWORKS
from siesta.head.kinds import DEFAULT_HEAD, HEADS
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
_FEWEST = 15  # samples of a class
_RATES = (0.01, 0.05, 0.2)
_PASSES = 8


@dataclass(frozen=True)
class Split:
    """Vectors and labels of one part of a data set."""

    vectors: npt.NDArray[Any]
    labels: Sequence[str]

    def accuracy(self, learner: Siesta) -> float:
        """Return the share of vectors that are given their label, in percent."""
        answers = learner.predict_many(self.vectors)
        right = [answer.label == label for answer, label in zip(answers, self.labels, strict=True)]
        return round(100 * float(np.mean(right)), 2)


def main() -> None:
    """Write a row for each data set, head, depth, rate and seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", action="append", default=[], metavar="NAME=FILE.npz")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studies" / "vector_tops.jsonl")
    arguments = parser.parse_args()
    digits = load_digits()
    data = {"digits": (digits.data, digits.target)}
    for given in arguments.vectors:
        name, _, file = given.partition("=")
        arrays = np.load(file)
        data[name] = arrays["vectors"], arrays["labels"]
    for name, (vectors, labels) in data.items():
        for seed in range(arguments.seeds):
            parts = splits(vectors, labels.astype(str), seed)
            for trial in trials(parts, seed):
                row = {"bench": "vector_tops", **trial, "config": {"dataset": name, **trial["config"]}, **provenance()}
                with arguments.out.open("a", encoding="utf-8") as file_of_rows:
                    file_of_rows.write(json.dumps(row) + "\n")
                Console().print(name, trial)


def splits(vectors: npt.NDArray[Any], labels: npt.NDArray[np.str_], seed: int) -> list[Split]:
    """Return what is learned, what chooses and what reports."""
    names, rows = np.unique(labels, return_inverse=True)
    usable = np.flatnonzero((np.bincount(rows) >= _FEWEST)[rows])
    order = np.random.default_rng(seed).permutation(usable)
    parts = np.split(order, [3 * len(order) // 5, 4 * len(order) // 5])
    return [Split(vectors[part], [str(names[rows[index]]) for index in part]) for part in parts]


def trials(parts: list[Split], seed: int) -> Iterator[dict[str, Any]]:
    """Yield a result for each depth and rate with the default head, and one for each other head."""
    default = 1, 0.05
    for head, (layers, lr) in product(HEADS, product(VECTOR_NETWORKS.values(), _RATES)):
        if head == DEFAULT_HEAD or (layers, lr) == default:
            yield trial(parts, layers, lr, head, seed)


def trial(parts: list[Split], layers: int, lr: float, head: str, seed: int) -> dict[str, Any]:
    """Return the accuracy before and after a sleep of eight passes."""
    train, val, test = parts
    features = train.vectors.shape[1]
    with Siesta.create(":memory:", features=features, top_layers=layers, head=head, seed=seed) as learner:
        learner.learn_many(train.vectors, train.labels)
        awake = {"awake_val": val.accuracy(learner), "awake_test": test.accuracy(learner)}
        report = learner.sleep(updates=_PASSES * len(train.labels), lr=lr)
        slept = {"slept_val": val.accuracy(learner), "slept_test": test.accuracy(learner)}
    config = {"features": features, "layers": layers, "lr": lr, "head": head, "seed": seed, "updates": report.updates}
    facts = {"classes": report.classes, "learned": len(train.labels), "tested": len(test.labels)}
    return {**awake, **slept, "used": report.used, **facts, "seconds": round(report.seconds, 1), "config": config}


if __name__ == "__main__":
    main()
