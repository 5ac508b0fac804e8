"""What an experiment will run, before it does: every method x order x seed, its updates and about how long it takes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from siesta.backbones import BACKBONES, PUBLISHED, RANDOM, make_backbone, make_space
from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.codecs import Raw
from siesta.contracts import Backbone, Ids
from siesta.data import Dataset, Stream, held_out, load_dataset, make_stream
from siesta.errors import BadInput
from siesta.experiment.config import Config, MethodEntry, Network, OrderEntry
from siesta.methods import METHODS, Kind

__all__ = ["Estimate", "PlannedRun", "Stopwatch", "estimate", "planned_runs", "read_dataset"]

_TIMED_AT_MOST = 64  # samples; more take as much longer


@dataclass(frozen=True)
class PlannedRun:
    """One method on one order with one seed.

    `base_step` is the order's base step, if it has one: also of a method that is given everything at once.
    """

    method: MethodEntry
    order: OrderEntry
    seed: int
    stream: Stream
    config: Config
    base_step: Ids | None = None

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.method.name}-{self.order.name}-{self.seed}"

    @property
    def command(self) -> str:
        """What runs it alone; where the data lie is left to who runs it."""
        chosen = f"--methods {self.method.name} --orders {self.order.name} --seeds {self.seed}"
        return f"{self.config.command} {chosen}"

    @property
    def kind(self) -> Kind:
        """What its method is."""
        return METHODS[self.method.kind]

    @cached_property
    def identity(self) -> str:
        """Hash of all that its results depend on."""
        config = self.config.identity(self.order, self.method, self.seed)
        return f"{config}-{self.stream.hash[:16]}-{_asked(self.stream.dataset)}"

    @property
    def start_name(self) -> str:
        """The name of what it starts from: methods share it where all that it depends on is the same."""
        parts = [self.method.network.model_dump_json(), str(self.config.data.image_size), str(self._base_hash)]
        if self.stream.base and self.method.base is not None:
            parts.append(self.method.base.model_dump_json())
        mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        return f"{self.kind.codec}-{self.samples}-{self.seed}-{mark}"

    @cached_property
    def _base_hash(self) -> str | None:
        """Of the base step, on whose pictures the codec is fitted."""
        if self.base_step is None:
            return None
        return replace(self.stream, indices=self.base_step, ends=(len(self.base_step),), base=False).hash

    @property
    def samples(self) -> int:
        """How many samples it may store: all, unless the config says otherwise."""
        return self.method.samples or len(self.stream.indices)


@dataclass(frozen=True)
class Estimate:
    """Updates of a run, exact where its stream is, and about how many seconds they and its evaluations take."""

    updates: int
    seconds: float


def read_dataset(config: Config) -> Dataset:
    """The data of a config, a part of the training set held out where it says so."""
    data = config.data
    options = {name: _beside(Path(data.path), value) for name, value in data.options.items()}
    dataset = load_dataset(data.dataset, data.path, **options)
    return held_out(dataset, data.held_out, data.held_out_seed) if data.held_out else dataset


def _beside(folder: Path, value: Any) -> Any:
    """The file of that name beside the data, where there is one; else the value as it is."""
    return str(folder / value) if isinstance(value, str) and (folder / value).is_file() else value


def _asked(dataset: Dataset) -> str:
    """Hash of the test set: its pictures by name, and their classes."""
    test = dataset.test
    words = "".join(f"{name}\0{dataset.classes[row]}\0" for name, row in zip(test.names, test.labels, strict=True))
    return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def planned_runs(config: Config, dataset: Dataset) -> list[PlannedRun]:
    """Every run of a config, methods of one order and seed together; what cannot run is refused here."""
    for method in config.methods:
        _check_network(f"methods.{method.name}.network", method.network, METHODS[method.kind].codec)
    runs = list(_runs(config, dataset))
    for run in runs:
        _check(run, dataset)
    return runs


def _check_network(where: str, network: Network, codec: str) -> None:
    if network.backbone not in BACKBONES:
        raise BadInput(f"{where}: there is no backbone '{network.backbone}': choose one of {', '.join(BACKBONES)}")
    try:
        space = make_space(network.space)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    if network.weights not in (PUBLISHED, RANDOM) and not Path(network.weights).is_file():
        raise BadInput(f"{where}: there is no file of weights at {network.weights}")
    used = network.codec_pictures if codec != Raw.name or space.centred else None
    if used is not None and not Path(used).is_dir():
        raise BadInput(f"{where}: there is no folder of pictures at {used}")


def _check(run: PlannedRun, dataset: Dataset) -> None:
    """Refuses a run that could not come to its end."""
    first = next(run.stream.steps())
    if not np.isin(dataset.test.labels, dataset.train.labels[first]).any():
        raise BadInput(
            f"orders.{run.order.name}: there are no test pictures of the classes of its first step: "
            "take larger steps, or another data set"
        )
    if run.kind.offline and run.samples < len(run.stream):
        raise BadInput(
            f"methods.{run.method.name} needs all {len(run.stream):,} samples and may store {run.samples:,}: "
            "leave samples out"
        )


def _runs(config: Config, dataset: Dataset) -> Iterator[PlannedRun]:
    for order in config.orders:
        for seed in config.seeds:
            try:
                stream = make_stream(dataset, order.kind, seed, **order.options)
            except BadInput as error:
                raise BadInput(f"orders.{order.name}: {error}") from None
            if config.base is not None and not stream.base:
                raise BadInput(f"orders.{order.name} has no base step: set its base_classes, or leave [base] out")
            base_step = next(stream.steps()) if stream.base else None
            for method in config.methods:
                seen = _as_one_step(stream) if METHODS[method.kind].offline else stream
                yield PlannedRun(method, order, seed, seen, config, base_step)


def _as_one_step(stream: Stream) -> Stream:
    """The same samples all at once: what a method that is not continual sees."""
    return replace(stream, ends=(len(stream.indices),), base=False)


class Stopwatch:
    """How long a training step and an answer take here, measured once for each kind of work."""

    def __init__(self, image_size: int) -> None:
        self._image_size = image_size
        self._seconds: dict[tuple[str, int | None, int], float] = {}

    def step(self, network: Network, whole: bool, batch: int) -> float:
        """Seconds of one training step of the top, or of the whole network, on a batch."""
        return 3.0 * self.answer(network, whole, batch)  # a backward pass costs about two forward passes

    def answer(self, network: Network, whole: bool, batch: int) -> float:
        """Seconds of one forward pass of the top, or of the whole network, on a batch."""
        key = network.backbone, 0 if whole else network.cut, min(batch, _TIMED_AT_MOST)
        if key not in self._seconds:
            self._seconds[key] = self._measured(*key)
        return self._seconds[key] * batch / key[2]

    def _measured(self, name: str, cut: int | None, batch: int) -> float:
        backbone = make_backbone(name, cut, weights="random")
        latents = torch.zeros(batch, *_input_shape(backbone, self._image_size))
        top = with_frozen_norms(backbone.top.to(memory_format=torch.channels_last))  # type: ignore[call-overload]
        latents = latents.contiguous(memory_format=torch.channels_last)
        times = []
        with torch.inference_mode():
            for _ in range(3):
                start = time.perf_counter()
                top(latents)
                times.append(time.perf_counter() - start)
        return min(times)


def _input_shape(backbone: Backbone, image_size: int) -> tuple[int, int, int]:
    return backbone.latent_shape(image_size)


def estimate(run: PlannedRun, dataset: Dataset, watch: Stopwatch) -> Estimate:
    """What a run will cost: its updates by formula, its time from the pace of this machine."""
    sizes = [len(step) for step in run.stream.steps()]
    if run.stream.base and run.method.base is not None:
        sizes = sizes[1:]
    settings, whole = run.method.settings, run.kind.codec == "raw"
    updates, batch = settings.planned_updates(sizes), settings.planned_batch()
    answers = sum(sizes) + _evaluated(run, dataset) * (2 if run.kind.sleeps else 1)
    network = run.method.network
    seconds = updates / batch * watch.step(network, whole, batch) + answers / 32 * watch.answer(network, whole, 32)
    return Estimate(updates, seconds)


def _evaluated(run: PlannedRun, dataset: Dataset) -> int:
    """Test samples asked about after all steps together, once a step."""
    of_class = np.bincount(dataset.test.labels, minlength=len(dataset.classes))
    total, seen = 0, np.zeros(len(dataset.classes), dtype=bool)
    for step in run.stream.steps():
        seen[dataset.train.labels[step]] = True
        total += int(of_class[seen].sum())
    return total
