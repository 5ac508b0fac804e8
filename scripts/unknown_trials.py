"""Compare scores that tell images of learned classes from others; write a row for each score and stage.

    python -m scripts.unknown_trials WORK...

The features are those that `scripts.head_features` has stored, of training images only. A score is judged by the AUROC
with which it separates held-out images of learned classes from those of classes that were never taught ("unknown"), and
right from wrong answers to images of learned classes ("errors").
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.metrics import roc_auc_score

from siesta.head import Discriminant, FeatureStatistics
from siesta.head.statistics import power_normalized
from siesta.provenance import provenance
from siesta.sleep.calibration import Confidence, softmax

ROOT = Path(__file__).parent.parent
_FACTS = ("dataset", "backbone", "image_size", "steps", "updates", "seed", "per_class")  # about the training
_SHRINKAGES = (0.2, 0.5)
Floats = npt.NDArray[np.float64]


def main() -> None:
    """Write the rows of all stages in which some classes are not taught yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, nargs="+")
    parser.add_argument("--stages", default="[0-9]*", help="pattern of stages, such as 1-*")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studies" / "unknown.jsonl")
    arguments = parser.parse_args()
    for work in arguments.work:
        facts = json.loads((work / "facts.json").read_text())
        config = {name: facts[name] for name in _FACTS if name in facts}
        with arguments.out.open("a", encoding="utf-8") as file:
            for row in _rows(work, arguments.stages):
                file.write(json.dumps({"bench": "unknown_trials", **row, "config": config, **provenance()}) + "\n")
                Console().print(row)


def _rows(work: Path, stages: str) -> Iterator[dict[str, Any]]:
    first = dict(np.load(work / "first.npz"))
    for file in sorted(work.glob(f"{stages}.npz")):
        stage = dict(np.load(file))
        truth = first["judge_labels"]
        known = np.isin(truth, stage["classes"])
        if known.all():
            continue
        statistics = FeatureStatistics.empty(stage["train"].shape[1])
        statistics.add(first["train_labels"][stage["learned"]], stage["train"])
        discriminant = Discriminant(statistics)
        logits = discriminant.logits(stage["judge"]).astype(np.float64)
        right = discriminant.class_ids[logits.argmax(axis=1)] == truth
        counts = {"learned": int(known.sum()), "unknown": int((~known).sum()), "top1": _percent(right[known].mean())}
        for name, score in familiarities(discriminant, logits, stage["judge"], truth, known).items():
            aurocs = roc_auc_score(known, score), roc_auc_score(right[known], score[known])
            result = dict(zip(("auroc_unknown", "auroc_errors"), map(_percent, aurocs), strict=True))
            yield {"stage": file.stem, "score": name, **result, **counts}


def familiarities(
    discriminant: Discriminant,
    logits: Floats,
    features: npt.NDArray[np.float32],
    truth: npt.NDArray[np.int32],
    known: npt.NDArray[np.bool_],
) -> dict[str, Floats]:
    """Return the scores (B,) of images with z (B, D), by name."""
    rows = np.searchsorted(discriminant.class_ids, truth[known])
    scores = softmax(logits / Confidence.of(logits[known], rows).temperature).max(axis=1)
    top = np.sort(logits, axis=1)
    found = {"softmax": scores, "largest score": top[:, -1], "margin": top[:, -1] - top[:, -2]}
    found["energy"] = top[:, -1] + np.log(np.exp(logits - top[:, -1:]).sum(axis=1))
    statistics = discriminant.base
    units = power_normalized(features.astype(np.float64)) - statistics.centre()
    means = statistics.means() - statistics.centre()
    answers = logits.argmax(axis=1)
    for shrinkage in _SHRINKAGES:
        within, total = (
            np.linalg.inv((1 - shrinkage) * part + shrinkage * np.trace(part) / len(part) * np.eye(len(part)))
            for part in (statistics.covariance(), statistics.total_covariance())
        )
        own = _squares(units - means[answers], within)
        found[f"mahalanobis, {shrinkage}"] = -own
        found[f"relative mahalanobis, {shrinkage}"] = _squares(units, total) - own
        for name, metric in (("within", within), ("total", total)):
            products = np.einsum("bd,bd->b", units @ metric, means[answers])
            lengths = np.sqrt(_squares(units, metric)), np.sqrt(_squares(means, metric))
            cosine = products / lengths[0] / lengths[1][answers]
            found[f"cosine in the metric of the {name} covariance, {shrinkage}"] = cosine
            for power in (0.25, 0.5, 1.0):
                key = f"softmax^{power} x that cosine, {name}, {shrinkage}"
                found[key] = scores**power * np.maximum(cosine, 1e-3)
        cosines = np.sort(units @ total @ means.T / lengths[0][:, None] / lengths[1], axis=1)
        found[f"largest cosine less half of the second, {shrinkage}"] = cosines[:, -1] - 0.5 * cosines[:, -2]
        found[f"largest cosine, standardised, {shrinkage}"] = (cosines[:, -1] - cosines.mean(axis=1)) / cosines.std(
            axis=1
        )
        for scale in (20, 40):
            found[f"softmax of {scale} cosines, {shrinkage}"] = softmax(scale * cosines).max(axis=1)
    return found


def _squares(rows: Floats, metric: Floats) -> Floats:
    """Return the squared lengths (B,) of rows (B, D) in a metric (D, D)."""
    return np.asarray(np.einsum("bd,bd->b", rows @ metric, rows))


def _percent(share: float) -> float:
    return round(100 * float(share), 2)


if __name__ == "__main__":
    main()
