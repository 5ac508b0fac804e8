"""Compare variants of sleep at equal updates on held-out training images; write a row for each stage.

    python -m scripts.sleep_variants CUB_200_2011 --dataset cub200 --image-size 112 --variants plain average

A fifth of the training images of each class is held out, and no test image is read. Four steps bring all classes; the
rows before and after each sleep have the accuracy of both heads, the trained cosine softmax and the linear
discriminant, on the held-out images of all classes taught so far, of those of earlier steps and of those of the last.
A variant that is in the file with the same config is not repeated.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional as F

from scripts.head_features import held_out_stream
from siesta import Siesta, SleepOptions
from siesta.contracts import Codes, Progress
from siesta.data import Stream, load_dataset
from siesta.experiment.code_cache import cached_codes
from siesta.head import Discriminant, Head
from siesta.provenance import provenance
from siesta.sleep.batch import Batch
from siesta.sleep.cosine_output import CosineOutput, cosine_logits
from siesta.sleep.loop import Load, Rehearsal, Samples, rehearse
from siesta.sleep.objective import Objective, all_parameters

ROOT = Path(__file__).parent.parent
FILE = ROOT / "results" / "studies" / "sleep_variants.jsonl"
_BATCH_SIZE = 64
_CONFIG = ("dataset", "backbone", "image_size", "steps", "updates", "seed")

Weights = dict[str, Tensor]
Training = Callable[..., Rehearsal]


@dataclass(frozen=True)
class Variant:
    """A variant of sleep: options, and what takes the place of the training loop.

    Attributes:
        options: Fields of `SleepOptions` that differ from the study's.
        training: Is called like `rehearse`.
    """

    options: dict[str, Any] = field(default_factory=dict)
    training: Training = rehearse


def _weights(top: nn.Module) -> Weights:
    return {name: tensor.detach().clone() for name, tensor in top.state_dict().items()}


def _between(one: Weights, other: Weights, share: float) -> Weights:
    """Return weights of which `share` is `other`."""
    return {
        name: torch.lerp(tensor, other[name], share) if tensor.is_floating_point() else tensor
        for name, tensor in one.items()
    }


def averaged(share: float) -> Training:
    """Use the mean of the weights over the last `share` of each sleep."""

    def train(top: nn.Sequential, head: Head, samples: Samples, *rest: Any) -> Rehearsal:
        budget, settings, on_progress, *others = rest
        mean: Weights = {}
        steps = 0

        def follow(progress: Progress) -> bool:
            nonlocal mean, steps
            if progress.fraction >= 1 - share:
                steps += 1
                now = _weights(top)
                mean = _between(mean, now, 1 / steps) if mean else now
            return on_progress is not None and bool(on_progress(progress))

        result = rehearse(top, head, samples, budget, settings, follow, *others)
        top.load_state_dict(mean)
        return result

    return train


def towards_previous(share: float) -> Training:
    """Move the weights by `share` to those of before the sleep after each sleep."""

    def train(top: nn.Sequential, *rest: Any) -> Rehearsal:
        previous = _weights(top)
        result = rehearse(top, *rest)
        top.load_state_dict(_between(_weights(top), previous, share))
        return result

    return train


def frozen_vectors(share: float) -> Training:
    """Leave the class vectors of earlier sleeps as they are over the first `share` of each sleep."""

    def train(top: nn.Sequential, head: Head, samples: Samples, *rest: Any) -> Rehearsal:
        budget, settings, on_progress, *others = rest
        old = torch.from_numpy(head.counts > 0)
        outputs: list[CosineOutput] = []
        started: list[Tensor] = []

        def parameters(top: nn.Sequential, output: CosineOutput) -> Iterator[nn.Parameter]:
            outputs[:] = [output]
            started[:] = [output.vectors[old].detach().clone()]
            return all_parameters(top, output)

        def follow(progress: Progress) -> bool:
            if progress.fraction < share:
                with torch.no_grad():
                    outputs[0].vectors[old] = started[0]
            return on_progress is not None and bool(on_progress(progress))

        frozen = partial(rehearse, objective=Objective(parameters=parameters))
        return frozen(top, head, samples, budget, settings, follow, *others)

    return train


def changed_latents(change: Callable[[Tensor, torch.Generator], Tensor]) -> Training:
    """Change the latents of each batch."""
    rng = torch.Generator().manual_seed(0)

    def train(top: nn.Sequential, head: Head, samples: Samples, *rest: Any) -> Rehearsal:
        load: Load = samples.load

        def loaded(planned: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Tensor, Tensor]:
            ids, latents, rows = load(planned)
            return ids, change(latents, rng), rows

        return rehearse(top, head, replace(samples, load=loaded), *rest)

    return train


def noise(latents: Tensor, rng: torch.Generator, error: float = 0.2) -> Tensor:
    """Return latents with noise whose energy is about that of the codec's error."""
    size = (error * latents.square().mean(dim=(0, 2, 3), keepdim=True)).sqrt()
    return latents + 0.5 * size * torch.randn(latents.shape, generator=rng)


def with_loss(make_loss: Callable[..., Callable[[Batch, Tensor, Tensor], Tensor]]) -> Training:
    """Minimise another loss, made from the top and the head before the sleep."""

    def train(top: nn.Sequential, head: Head, *rest: Any) -> Rehearsal:
        return partial(rehearse, objective=Objective(make_loss(top, head)))(top, head, *rest)

    return train


def smoothed(_top: nn.Sequential, _head: Head) -> Callable[[Batch, Tensor, Tensor], Tensor]:
    """Return the cross-entropy with a tenth of label smoothing."""
    return lambda batch, _features, logits: F.cross_entropy(logits, batch.rows, label_smoothing=0.1)


def soft_targets(top: nn.Sequential, head: Head) -> Callable[[Batch, Tensor, Tensor], Tensor]:
    """Return the cross-entropy, half of it with the answers of the previous generation as soft targets."""
    teacher = copy.deepcopy(top).eval()
    vectors, scale = torch.tensor(head.weights()), head.scale

    def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
        with torch.no_grad():
            targets = cosine_logits(teacher(batch.latents), vectors, scale).softmax(dim=1)
        return 0.5 * F.cross_entropy(logits, batch.rows) + 0.5 * F.cross_entropy(logits, targets)

    return loss


VARIANTS: dict[str, Variant] = {
    "plain": Variant(),
    "average 0.5": Variant(training=averaged(0.5)),
    "default": Variant(options={"crop": 0.4}),
    "default, average 0.5": Variant(options={"crop": 0.4}, training=averaged(0.5)),
    "default, average 0.3": Variant(options={"crop": 0.4}, training=averaged(0.3)),
    "default, average 0.5, grasp": Variant(options={"crop": 0.4, "policy": "grasp"}, training=averaged(0.5)),
    "default, smoothing": Variant(options={"crop": 0.4}, training=with_loss(smoothed)),
    "default, old vectors frozen": Variant(options={"crop": 0.4}, training=frozen_vectors(0.3)),
    "default, double rate": Variant(options={"crop": 0.4, "lr": 2.0}),
    "previous 0.3": Variant(training=towards_previous(0.3)),
    "noise": Variant(training=changed_latents(noise)),
    "soft targets": Variant(training=with_loss(soft_targets)),
    "double rate": Variant(options={"lr": 2.0}),
    "adamw": Variant(options={"optimizer": "adamw", "lr": 0.02, "weight_decay": 0.01}),
    "grasp": Variant(options={"policy": "grasp"}),
}


def main() -> None:
    """Write the rows of all variants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--dataset", default="cub200")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--per-class", type=int, default=10**6, help="use the first so many training images of a class")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--updates", type=int, default=9600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", choices=VARIANTS, nargs="+", default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=FILE)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = {name: getattr(arguments, name) for name in _CONFIG}
    if arguments.dataset == "image_folder":
        config["dataset"] = arguments.path.name
    lines = arguments.out.read_text("utf-8").splitlines() if arguments.out.exists() else []
    done = {row["variant"] for row in map(json.loads, lines) if row["config"] == config}
    stream = held_out_stream(load_dataset(arguments.dataset, arguments.path), arguments)
    for name in arguments.variants:
        if name in done:
            continue
        rows = list(_trial(stream, VARIANTS[name], arguments))
        with arguments.out.open("a", encoding="utf-8") as file:
            for row in rows:
                file.write(
                    json.dumps({"bench": "sleep_variants", "variant": name, **row, "config": config, **provenance()})
                    + "\n"
                )
        for row in rows:
            Console().print(name, row, highlight=False)


def _trial(stream: Stream, variant: Variant, arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    with Siesta.create(
        ":memory:",
        memory=f"{len(stream.indices)} samples",
        backbone=arguments.backbone,
        image_size=arguments.image_size,
        hold_out=False,
        head="discriminant",
        seed=arguments.seed,
    ) as learner:
        train = cached_codes(stream.dataset.train, learner.pipeline).codes
        judge = cached_codes(stream.dataset.test, learner.pipeline).codes
        options = SleepOptions(updates=arguments.updates, batch_size=32, seed=arguments.seed, tolerance=1.0, crop=1.0)
        lr = learner.pipeline.backbone.defaults.lr * 32 / 64 * variant.options.get("lr", 1.0)
        options = replace(options, **{**variant.options, "lr": lr})
        known: set[int] = set()
        for number, step in enumerate(stream.steps()):
            rows = stream.dataset.train.labels[step]
            learner.learn_encoded(train[step], [stream.dataset.classes[row] for row in rows])
            new = set(rows.tolist())
            yield {"stage": f"{number}-awake", **_judged(learner, stream, judge, known, new)}
            start = time.monotonic()
            with mock.patch("siesta.sleep.consolidate.rehearse", variant.training):
                report = learner.sleep(options)
            seconds = round(time.monotonic() - start, 1)
            judged = _judged(learner, stream, judge, known, new)
            yield {"stage": f"{number}-slept", "updates": report.updates, "seconds": seconds, **judged}
            known |= new


def _judged(learner: Siesta, stream: Stream, judge: Codes, known: set[int], new: set[int]) -> dict[str, float]:
    """Return the accuracy of both heads on the held-out images of known and of new classes."""
    labels = stream.dataset.test.labels
    chosen = np.flatnonzero(np.isin(labels, list(known | new)))
    truth = labels[chosen]
    starts = range(0, len(chosen), _BATCH_SIZE)
    features = np.concatenate(
        [learner.pipeline.features(np.array(judge[chosen[start : start + _BATCH_SIZE]])) for start in starts]
    )
    row_of = {label: row for row, label in enumerate(stream.dataset.classes)}
    class_rows = {record.id: row_of[record.label] for record in learner.classes()}
    result: dict[str, float] = {}
    heads: dict[str, Head | Discriminant | None] = {
        "cosine": learner.head,
        "discriminant": learner._state.discriminant,
    }
    for name, head in heads.items():
        if head is None:
            continue
        rows = np.array([class_rows[class_id] for class_id in head.class_ids.tolist()])
        ranks = rows[np.argsort(-head.logits(features), axis=1)[:, :5]]
        right = ranks[:, 0] == truth
        result[f"{name}_top1"] = right.mean()
        result[f"{name}_top5"] = (ranks == truth[:, None]).any(axis=1).mean()
        result[f"{name}_new_top1"] = right[np.isin(truth, list(new))].mean()
        if known:
            result[f"{name}_old_top1"] = right[np.isin(truth, list(known))].mean()
    return {name: round(100 * float(value), 2) for name, value in result.items()}


if __name__ == "__main__":
    main()
