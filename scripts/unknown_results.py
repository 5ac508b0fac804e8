"""Learn half of the classes of a data set, predict images of all, and write rows to results/unknown.jsonl.

    python -m scripts.unknown_results --dataset cub200 --path CUB_200_2011 --image-size 112
    python -m scripts.unknown_results --dataset image_folder --path CIFAR-100 --image-size 96 --per-class 60

One row says how well familiarity, and the probability of the best label, separate test images of learned classes from
those of the others (AUROC); one row for each error rate says what it rejects, or why it is refused. Older rows of the
same data set are replaced.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from sklearn.metrics import roc_auc_score

from scripts.measurement_tables import ROOT
from siesta import Siesta
from siesta.contracts import Prediction
from siesta.data import Dataset, Split, load_dataset
from siesta.errors import BadInput
from siesta.experiment.code_cache import cached_codes
from siesta.provenance import provenance

ERROR_RATES = (0.3, 0.2, 0.1, 0.05)


def main() -> None:
    """Learn, sleep, predict, and write the rows."""
    arguments = _arguments()
    torch.set_num_threads(1)
    whole = load_dataset(arguments.dataset, arguments.path)
    train, test = (_some_of_classes(split, arguments.per_class, arguments.seed) for split in (whole.train, whole.test))
    dataset = replace(whole, train=train, test=test)
    learned = np.arange(0, len(dataset.classes), 2)
    with Siesta.create(":memory:", image_size=arguments.image_size, seed=arguments.seed) as learner:
        chosen = np.flatnonzero(np.isin(dataset.train.labels, learned))
        chosen = np.random.default_rng(arguments.seed).permutation(chosen)
        train = dataset.train.subset(chosen)
        codes = cached_codes(train, learner.pipeline).codes
        learner.learn_encoded(np.array(codes), [dataset.classes[row] for row in train.labels])
        report = learner.sleep(updates=arguments.updates, batch_size=32, seed=arguments.seed)
        Console().print(report.summary())
        codes = cached_codes(dataset.test, learner.pipeline).codes
        predictions = learner.predict_encoded(np.array(codes), top=1)
        rows = [_separation(dataset, learned, predictions), *_error_rates(learner, dataset, learned, predictions)]
    names = ("image_size", "updates", "per_class", "seed")
    config = {**{name: getattr(arguments, name) for name in names}, "classes": len(learned), "batch": 32}
    data = arguments.path.name
    shared = {"bench": "unknown", "data": data, "config": config, "held_out": report.held_out, **provenance()}
    _write(data, [{**row, **shared} for row in rows])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cub200")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument(
        "--per-class", type=int, default=10**6, help="use so many random training and test images of a class"
    )
    parser.add_argument("--updates", type=int, default=4800)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _some_of_classes(split: Split, count: int, seed: int) -> Split:
    """Return random images of each class; files are often sorted by what they show, so the first ones would not do."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(split.labels == label))[:count] for label in np.unique(split.labels)]
    return split.subset(np.sort(np.concatenate(rows)))


def _separation(dataset: Dataset, learned: npt.NDArray[np.int64], predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Return the AUROC of both scores, for unknown classes and for errors on images of learned ones."""
    known = np.isin(dataset.test.labels, learned)
    right = _right(dataset, predictions)
    found: dict[str, Any] = {"learned": int(known.sum()), "others": int((~known).sum())}
    found["top1"] = _percent(right[known].mean())
    for name in ("score", "familiarity"):
        values = np.array([getattr(prediction, name) for prediction in predictions])
        found[f"auroc_unknown_{name}"] = _percent(roc_auc_score(known, values))
        found[f"auroc_errors_{name}"] = _percent(roc_auc_score(right[known], values[known]))
    Console().print(found)
    return found


def _error_rates(
    learner: Siesta, dataset: Dataset, learned: npt.NDArray[np.int64], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    known = np.isin(dataset.test.labels, learned)
    right = _right(dataset, predictions)
    familiarity = np.array([prediction.familiarity for prediction in predictions])
    rows: list[dict[str, Any]] = []
    for error_rate in ERROR_RATES:
        try:
            threshold = learner.threshold(error_rate)
        except BadInput as error:
            rows.append({"error_rate": error_rate, "refused": str(error)})
            continue
        accepted = familiarity >= threshold
        rejected = {"learned_rejected": (~accepted[known]).mean(), "others_rejected": (~accepted[~known]).mean()}
        shares = {**rejected, "right_of_accepted": right[known & accepted].mean()}
        percents = {name: _percent(share) for name, share in shares.items()}
        rows.append({"error_rate": error_rate, "threshold": threshold, **percents})
    Console().print(rows)
    return rows


def _right(dataset: Dataset, predictions: Sequence[Prediction]) -> npt.NDArray[np.bool_]:
    labels = (dataset.classes[row] for row in dataset.test.labels.tolist())
    return np.array([prediction.label == label for prediction, label in zip(predictions, labels, strict=True)])


def _percent(share: float) -> float:
    return round(100 * float(share), 2)


def _write(data: str, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of a data set."""
    file = ROOT / "results" / "unknown.jsonl"
    before = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    kept = [row for row in before if row.get("data") not in (None, data)]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*kept, *rows]), encoding="utf-8")


if __name__ == "__main__":
    main()
