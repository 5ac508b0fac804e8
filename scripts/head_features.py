"""Train SIESTA on a part of a data set's training images, and store the features of all stages to compare heads on.

    python -m scripts.head_features WORK --dataset cub200 --path CUB_200_2011 --image-size 224 --steps 4 --updates 9600

A fifth of the training images of each class is held out, and no test image is read. Before and after the sleep of each
step, the features z of all stored and all held-out images under the active top are written to WORK/<stage>.npz; their
features under the initial top are in WORK/first.npz. `scripts.head_trials` compares heads on these files.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from safetensors.torch import save_file

from siesta import Siesta, SleepOptions
from siesta.contracts import Codes
from siesta.data import Dataset, Stream, held_out, load_dataset, make_stream
from siesta.experiment.code_cache import cached_codes
from siesta.provenance import provenance

HELD_OUT = 0.2
_BATCH_SIZE = 64


def main() -> None:
    """Train, and write the features of each stage."""
    arguments = _arguments()
    torch.set_num_threads(1)
    arguments.work.mkdir(parents=True, exist_ok=True)
    stream = held_out_stream(load_dataset(arguments.dataset, arguments.path, classes=arguments.classes), arguments)
    with Siesta.create(
        ":memory:",
        memory=f"{len(stream.indices)} samples",
        backbone=arguments.backbone,
        image_size=arguments.image_size,
        hold_out=False,
        seed=arguments.seed,
    ) as learner:
        _train(learner, stream, arguments)
    chosen = {name: value for name, value in vars(arguments).items() if name not in ("work", "path")}
    facts = {**chosen, "dataset": arguments.path.name, **provenance()}
    (arguments.work / "facts.json").write_text(json.dumps(facts))


def held_out_stream(whole: Dataset, arguments: argparse.Namespace) -> Stream:
    """Return the steps of a study on training images: its test images are a fifth of those of each class.

    Args:
        whole: The data set.
        arguments: With `per_class`, the number of training images of a class, `steps` and `seed`.
    """
    train = whole.train.subset(_first_of_classes(whole.train.labels, arguments.per_class))
    dataset = held_out(replace(whole, train=train), HELD_OUT, arguments.seed)
    return make_stream(
        dataset,
        "class_incremental",
        arguments.seed,
        classes_per_step=len(dataset.classes) // arguments.steps,
        shuffle_classes=True,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--dataset", default="cub200")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--per-class", type=int, default=10**6, help="use the first so many training images of a class")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--most-steps", type=int, default=10**6, help="end after the sleep of so many steps")
    parser.add_argument("--updates", type=int, default=9600)
    parser.add_argument("--sleep", type=json.loads, default={}, help="other options of a sleep, as JSON")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _train(learner: Siesta, stream: Stream, arguments: argparse.Namespace) -> None:
    console = Console()
    train = cached_codes(stream.dataset.train, learner.pipeline).codes
    judge = cached_codes(stream.dataset.test, learner.pipeline).codes
    judge_labels = stream.dataset.test.labels
    options = SleepOptions(updates=arguments.updates, batch_size=32, seed=arguments.seed, **arguments.sleep)
    learned = np.zeros(0, np.int64)
    _save_top(learner, arguments.work / "first.safetensors")
    np.savez(
        arguments.work / "first.npz",
        train=_features(learner, train),
        judge=_features(learner, judge),
        train_labels=stream.dataset.train.labels,
        judge_labels=judge_labels,
    )
    for number, step in enumerate(islice(stream.steps(), arguments.most_steps)):
        labels = [stream.dataset.classes[row] for row in stream.dataset.train.labels[step]]
        learner.learn_encoded(train[step], labels)
        learned = np.concatenate([learned, step])
        for stage in ("awake", "slept"):
            if stage == "slept":
                report = learner.sleep(options)
                console.print(f"{number}: {report.summary()}")
                _save_top(learner, arguments.work / f"{number}.safetensors")
            _write_stage(learner, stream, arguments.work / f"{number}-{stage}.npz", train, judge, learned)


def _write_stage(
    learner: Siesta, stream: Stream, file: Path, train: Codes, judge: Codes, learned: npt.NDArray[np.int64]
) -> None:
    """Write the features of the learned and of all held-out images (`judge`), and the head in use."""
    rows = {label: row for row, label in enumerate(stream.dataset.classes)}
    classes = np.array([rows[record.label] for record in learner.classes()])
    np.savez(
        file,
        learned=learned,
        train=_features(learner, train[learned]),
        judge=_features(learner, judge),
        classes=classes,
        head=learner.head.weights(),
        scale=learner.head.scale,
    )


def _save_top(learner: Siesta, file: Path) -> None:
    save_file({name: tensor.contiguous() for name, tensor in learner.pipeline.backbone.top.state_dict().items()}, file)


def _features(learner: Siesta, codes: Codes) -> npt.NDArray[np.float32]:
    starts = range(0, len(codes), _BATCH_SIZE)
    return np.concatenate([learner.pipeline.features(np.array(codes[start : start + _BATCH_SIZE])) for start in starts])


def _first_of_classes(labels: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
    """Return the indices of the first `count` images of each class."""
    kept = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    return np.sort(np.concatenate(kept))


if __name__ == "__main__":
    main()
