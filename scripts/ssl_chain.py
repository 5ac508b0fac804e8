"""The chain of `scripts.ssl_results`: base initialisation and steps of SIESTA over pre-trained bottoms."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

from scripts.ssl_rows import Row, add_row, link_pictures, pictures_of_classes, read_rows
from siesta.data import Dataset
from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.base_init import initialise
from siesta.learner.folders import accuracies, learn_files, predict_files
from siesta.pretrain import PRETRAINERS

__all__ = ["best_method", "run_chain"]


def best_method(names: Iterable[str], results: Path) -> str:
    """Return the self-supervised method with the best mean read-out."""
    rows = read_rows(results, "readout")
    measured = {row["method"] for row in rows}
    means = {
        name: mean(row["top1"] for row in rows if row["method"] == name)
        for name in names
        if name in measured and not PRETRAINERS[name].needs_labels
    }
    if not means:
        raise BadInput(
            "the chain starts from the best read-out, and there is none: run --parts readout, or give --starts"
        )
    return max(means, key=lambda name: means[name])


def run_chain(
    starts: Iterable[str], data: Dataset, options: argparse.Namespace, weights_of: Callable[[str], Path]
) -> None:
    """Initialise a learner on the first classes and run steps of SIESTA, from each of the initial weights.

    Args:
        starts: Names of initial weights.
        data: The data set.
        options: Options of the command line.
        weights_of: Returns the file of weights of a name.
    """
    config = {
        "backbone": options.backbone,
        "image_size": options.image_size,
        "updates": options.updates,
        "rate": options.rate,
        "base_epochs": options.base_epochs,
        "base_classes": options.base_classes,
        "step_classes": options.step_classes,
    }
    for name in starts:
        path = options.work / f"chain-{name}.siesta"
        base_pictures = pictures_of_classes(data, data.train, 0, options.base_classes)
        initialise(
            path,
            link_pictures("base", base_pictures, options.work),
            weights=weights_of(name),
            backbone=options.backbone,
            image_size=options.image_size,
            memory="1GB",
            epochs=options.base_epochs,
            lr=options.rate,
        )
        with Siesta.open(path) as learner:
            for step, end in enumerate(range(options.base_classes, len(data.classes) + 1, options.step_classes)):
                row = {"bench": "ssl_chain", "config": config, "start": name, "step": step, "classes": end}
                _run_step(learner, data, row, options)


def _run_step(learner: Siesta, data: Dataset, row: Row, options: argparse.Namespace) -> None:
    """Learn the classes of a step, sleep and measure accuracy on all classes so far; the base has slept already."""
    rows = read_rows(options.results, "chain")
    if any((old["start"], old["step"]) == (row["start"], row["step"]) for old in rows):
        return
    step, end = row["step"], row["classes"]
    test_pictures = pictures_of_classes(data, data.test, 0, end)
    before = None
    if step and len(learner.info().sleeps) <= step:
        for _ in learn_files(learner, pictures_of_classes(data, data.train, end - options.step_classes, end)):
            pass
        before = accuracies(predict_files(learner, test_pictures))
        learner.sleep(updates=options.updates, batch_size=32, lr=options.rate / 2)
    after = accuracies(predict_files(learner, test_pictures))
    for name, measured in (("before", before), ("after", after)):
        for k in (1, 5):
            row[f"{name}_top{k}"] = None if measured is None else measured[f"top{k}"]
    add_row(options.results, "chain", row)
