"""Compare heads on the features that `scripts.head_features` has stored; write a row for each head and stage.

    python -m scripts.head_trials WORK...

Each head is fitted to the features of the stored samples and evaluated on held-out training images: of all classes
learned so far, of the classes of earlier steps, and of those of the last step. Before a sleep that is repeated with the
first 1 or 5 samples of each new class, and with one new class instead of all; after it with a long-tailed part of the
samples, of which the first class has ten times as many as the last. AUROC says how well scores separate images of
learned classes from images of classes still to come.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.metrics import roc_auc_score

from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
_FACTS = ("dataset", "backbone", "image_size", "steps", "updates", "seed", "commit")  # about the training
Floats = npt.NDArray[np.float64]
Score = Callable[["Stage"], tuple[Floats, Floats | None]]
"""Scores (B, K) of the held-out images, and the familiarity (B,) of each, None if it is the largest probability."""


@dataclass(frozen=True)
class Stage:
    """The features of one stage, in the spaces of the active and of the first top.

    Attributes:
        active: z of the stored samples under the active top, (N, D).
        first: The same under the first top.
        rows: Row of each sample's class, (N,).
        judge_active: z of the held-out images under the active top, (B, D).
        judge_first: The same under the first top.
        head: Class vectors of the trained head, (K, D).
        scale: 1 / temperature of the trained head.
    """

    active: Floats
    first: Floats
    rows: npt.NDArray[np.int64]
    judge_active: Floats
    judge_first: Floats
    head: Floats
    scale: float


def _unit(features: Floats) -> Floats:
    units: Floats = features / np.maximum(np.linalg.norm(features, axis=-1, keepdims=True), 1e-12)
    return units


def _power(features: Floats) -> Floats:
    """Return the square roots of z, with their signs, divided by their length."""
    return _unit(np.sign(features) * np.sqrt(np.abs(features)))


def _means(features: Floats, rows: npt.NDArray[np.int64], classes: int) -> Floats:
    totals = np.zeros((classes, features.shape[1]))
    np.add.at(totals, rows, features)
    means: Floats = totals / np.bincount(rows, minlength=classes)[:, None]
    return means


def _within(features: Floats, rows: npt.NDArray[np.int64], means: Floats) -> Floats:
    deviations = features - means[rows]
    return deviations.T @ deviations / (len(features) - len(means))


def _shrunk(covariance: Floats, share: float) -> Floats:
    width = len(covariance)
    shrunk: Floats = (1 - share) * covariance + share * np.trace(covariance) / width * np.eye(width)
    return shrunk


def _discriminant(
    train: Floats, rows: npt.NDArray[np.int64], judge: Floats, classes: int, share: float, corrected: bool
) -> tuple[Floats, Floats]:
    """Return scores (B, K) and familiarity (B,), the negative relative Mahalanobis distance, of z `judge` (B, D)."""
    means = _means(train, rows, classes)
    within = _within(train, rows, means)
    precision = np.linalg.inv(_shrunk(within, share))
    weights = means @ precision
    noise = corrected * np.sum(precision * within) / np.bincount(rows, minlength=classes)
    scores = judge @ weights.T - 0.5 * ((weights * means).sum(axis=1) - noise)
    centre = train.mean(axis=0)
    total = np.linalg.inv(_shrunk(np.cov(train.T, bias=True), share))
    deviations = judge - centre
    background = np.einsum("bd,bd->b", deviations @ total, deviations)
    own = np.einsum("bd,bd->b", judge @ precision, judge) - 2 * scores.max(axis=1)
    return scores, background - own


def _cosine(stage: Stage) -> tuple[Floats, Floats | None]:
    return stage.scale * _unit(stage.judge_active) @ _unit(stage.head).T, None


def _cosine_means(stage: Stage) -> tuple[Floats, Floats | None]:
    means = _means(stage.active, stage.rows, len(stage.head))
    return stage.scale * _unit(stage.judge_active) @ _unit(means).T, None


def _lda(share: float, own: Callable[[Floats], Floats] = _unit, top: str = "active", corrected: bool = True) -> Score:
    def score(stage: Stage) -> tuple[Floats, Floats | None]:
        if top == "both":
            train = np.concatenate([own(stage.active), own(stage.first)], axis=1)
            judge = np.concatenate([own(stage.judge_active), own(stage.judge_first)], axis=1)
        else:
            train, judge = (own(stage.active), own(stage.judge_active))
            if top == "first":
                train, judge = (own(stage.first), own(stage.judge_first))
        return _discriminant(train, stage.rows, judge, len(stage.head), share, corrected)

    return score


def _ridge(factor: float) -> Score:
    def score(stage: Stage) -> tuple[Floats, Floats | None]:
        train, judge = _unit(stage.active), _unit(stage.judge_active)
        gram = train.T @ train
        targets = np.eye(len(stage.head))[stage.rows]
        gram += factor * np.trace(gram) / len(gram) * np.eye(len(gram))
        return judge @ np.linalg.solve(gram, train.T @ targets), None

    return score


def _sum(first: Score, second: Score, weight: float) -> Score:
    """Return the sum of two scores, each divided by its spread over classes."""

    def score(stage: Stage) -> tuple[Floats, Floats | None]:
        parts = [part(stage)[0] for part in (first, second)]
        parts = [part / part.std(axis=1).mean() for part in parts]
        return (1 - weight) * parts[0] + weight * parts[1], None

    return score


HEADS: dict[str, Score] = {
    "trained cosine": _cosine,
    "class means, cosine": _cosine_means,
    **{f"lda {share}": _lda(share) for share in (0.2, 0.5, 0.8)},
    "lda 0.8, offsets not corrected": _lda(0.8, corrected=False),
    "lda 0.8, z not normalised": _lda(0.8, own=np.asarray),
    **{f"lda {share}, roots": _lda(share, own=_power) for share in (0.5, 0.8, 0.9)},
    "lda 0.8, roots, both tops": _lda(0.8, own=_power, top="both"),
    "lda 0.8, first top": _lda(0.8, top="first"),
    **{f"lda {share}, both tops": _lda(share, top="both") for share in (0.5, 0.8)},
    **{f"ridge {factor}": _ridge(factor) for factor in (1.0, 10.0)},
    **{
        f"lda 0.8, roots + {weight} trained cosine": _sum(_lda(0.8, own=_power), _cosine, weight)
        for weight in (0.25, 0.5)
    },
}


def main() -> None:
    """Write a row for each head, stage and number of samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studies" / "heads.jsonl")
    arguments = parser.parse_args()
    for work in arguments.work:
        facts = json.loads((work / "facts.json").read_text())
        config = {name: facts[name] for name in _FACTS}
        with arguments.out.open("a", encoding="utf-8") as file:
            for row in _rows(work):
                file.write(json.dumps({"bench": "heads", **row, "config": config, **provenance()}) + "\n")
                Console().print(row)


def _rows(work: Path) -> Iterator[dict[str, object]]:
    first = dict(np.load(work / "first.npz"))
    previous = 0
    for file in sorted(work.glob("[0-9]*.npz")):
        stage = dict(np.load(file))
        labels = first["train_labels"][stage["learned"]]
        slept = file.stem.endswith("slept")
        for samples, chosen in _parts(labels, stage["classes"], previous, slept).items():
            for name, head in HEADS.items():
                if samples in _FEWER and name == "trained cosine":
                    continue  # its vectors hold all samples
                judged = _judged(head, stage, first, chosen, previous)
                yield {"stage": file.stem, "samples": samples, "head": name, **judged}
        if slept:
            previous = len(stage["classes"])


_FEWER = ("1 of a new class", "5 of a new class", "long-tailed")


def _parts(
    labels: npt.NDArray[np.int32], classes: npt.NDArray[np.int64], previous: int, slept: bool
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the indices of the samples that heads are fitted to, by name; the classes from `previous` on are new."""
    everything = {"all": np.arange(len(labels))}
    if slept:
        shares = 0.1 ** np.linspace(0, 1, len(classes))
        return everything | {"long-tailed": _first_of(labels, dict(zip(classes.tolist(), shares, strict=True)))}
    if not previous:
        return everything
    old = dict.fromkeys(classes[:previous].tolist(), 1.0)
    new = classes[previous:].tolist()
    sizes = {label: int((labels == label).sum()) for label in new}
    return everything | {
        "one new class": _first_of(labels, old | {new[0]: 1.0}),
        **{
            f"{count} of a new class": _first_of(labels, old | {label: count / sizes[label] for label in new})
            for count in (1, 5)
        },
    }


def _first_of(labels: npt.NDArray[np.int32], shares: dict[int, float]) -> npt.NDArray[np.int64]:
    """Return the indices of the first samples of each class, a share of them, at least one."""
    kept = [np.flatnonzero(labels == label) for label in shares]
    parts = [found[: max(round(share * len(found)), 1)] for found, share in zip(kept, shares.values(), strict=True)]
    return np.sort(np.concatenate(parts))


def _judged(
    head: Score,
    stage: dict[str, npt.NDArray[Any]],
    first: dict[str, npt.NDArray[Any]],
    chosen: npt.NDArray[np.int64],
    previous: int,
) -> dict[str, float]:
    labels = first["train_labels"][stage["learned"]][chosen]
    present = np.flatnonzero(np.isin(stage["classes"], labels))
    row_of = {int(label): row for row, label in enumerate(stage["classes"][present])}
    rows = np.array([row_of[int(label)] for label in labels])
    truth = np.array([row_of.get(int(label), -1) for label in first["judge_labels"]])
    scores, familiarity = head(
        Stage(
            stage["train"][chosen].astype(np.float64),
            first["train"][stage["learned"]][chosen].astype(np.float64),
            rows,
            stage["judge"].astype(np.float64),
            first["judge"].astype(np.float64),
            stage["head"][present].astype(np.float64),
            float(stage["scale"]),
        )
    )
    known = truth >= 0
    ranks = np.argsort(-scores, axis=1)[:, :5]
    right = ranks[:, 0] == truth
    best5 = (ranks == truth[:, None]).any(axis=1)
    result = {"top1": right[known].mean(), "top5": best5[known].mean()}
    if previous:
        result["old_top1"] = right[known & (truth < previous)].mean()
        result["new_top1"] = right[truth >= previous].mean()
    unknown = ~np.isin(first["judge_labels"], stage["classes"])
    if unknown.any():
        shifted = scores - scores.max(axis=1, keepdims=True)
        probability = 1 / np.exp(shifted / shifted.std()).sum(axis=1)
        either = known | unknown
        result["auroc_softmax"] = roc_auc_score(known[either], probability[either])
        if familiarity is not None:
            result["auroc_relative_mahalanobis"] = roc_auc_score(known[either], familiarity[either])
            result["auroc_largest_score"] = roc_auc_score(known[either], scores.max(axis=1)[either])
    return {name: round(100 * float(value), 2) for name, value in result.items()}


if __name__ == "__main__":
    main()
