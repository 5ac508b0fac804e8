"""The runs of an experiment: every method x order x seed, with its number of updates and approximate duration."""

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

from siesta.backbones import PUBLISHED, RANDOM, find_spec, make_backbone, make_space
from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.backbones.layers import channels_last
from siesta.codecs import CODECS
from siesta.codecs.latents import is_map
from siesta.contracts import Ids
from siesta.data import Dataset, Stream, held_out, load_dataset, make_stream
from siesta.errors import BadInput
from siesta.experiment.config import Config, MethodEntry, OrderEntry
from siesta.experiment.config_schema import NetworkConfig
from siesta.head.kinds import COSINE
from siesta.learner.codec_options import check_codec_options
from siesta.methods import METHODS, MethodSpec

__all__ = ["Estimate", "PlannedRun", "Stopwatch", "estimate_cost", "planned_runs", "read_dataset"]

_MAX_TIMED_BATCH = 64  # the time of larger batches is taken to be proportional
_EVALUATION_BATCH = 32


@dataclass(frozen=True)
class PlannedRun:
    """One method on one order with one seed.

    Attributes:
        method: The method and its settings.
        order: The order.
        seed: The seed.
        stream: The samples in the order that the method gets them.
        config: The config of the experiment.
        base_step: Samples of the order's base step, if it has one; set for offline methods too, although their stream
            has a single step.
    """

    method: MethodEntry
    order: OrderEntry
    seed: int
    stream: Stream
    config: Config
    base_step: Ids | None = None

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return f"{self.method.name}-{self.order.name}-{self.seed}"

    @property
    def command(self) -> str:
        """The command that runs it alone, without the location of the data."""
        selection = f"--methods {self.method.name} --orders {self.order.name} --seeds {self.seed}"
        return f"{self.config.command} {selection}"

    @property
    def spec(self) -> MethodSpec:
        """The entry of its method in `METHODS`."""
        return METHODS[self.method.kind]

    @cached_property
    def identity(self) -> str:
        """Hash of everything that its results depend on: config, training stream and test set."""
        config = self.config.identity(self.order, self.method, self.seed)
        return f"{config}-{self.stream.hash[:16]}-{_test_set_hash(self.stream.dataset)}"

    @property
    def initial_state_name(self) -> str:
        """Name of its initial state; runs share it if everything that the state depends on is equal."""
        parts = [self.method.network.model_dump_json(), str(self.config.data.image_size), str(self._base_hash)]
        if self.stream.base and self.method.base is not None:
            parts.append(self.method.base.model_dump_json(by_alias=True))
        if self.head != COSINE:
            parts.append(self.head)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        return f"{self.spec.codec}-{self.samples}-{self.seed}-{digest}"

    @property
    def head(self) -> str:
        """Name of the head of its initial state: that of the method's settings, if they have one."""
        return str(getattr(self.method.settings, "head", COSINE))

    @cached_property
    def _base_hash(self) -> str | None:
        """Hash of the base step, whose images the codec is fitted on."""
        if self.base_step is None:
            return None
        return replace(self.stream, indices=self.base_step, ends=(len(self.base_step),), base=False).hash

    @property
    def samples(self) -> int:
        """Number of samples that it may store: all of them, unless the config limits it."""
        return self.method.samples or len(self.stream.indices)


@dataclass(frozen=True)
class Estimate:
    """Expected costs of a run.

    Attributes:
        updates: Number of updates, by formula.
        seconds: Approximate duration of updates and evaluations.
    """

    updates: int
    seconds: float


def read_dataset(config: Config) -> Dataset:
    """Load the data set of a config; hold out a part of its training set if the config says so."""
    data = config.data
    options = {name: _resolved(Path(data.path), value) for name, value in data.options.items()}
    dataset = load_dataset(data.dataset, data.path, **options)
    return held_out(dataset, data.held_out, data.held_out_seed) if data.held_out else dataset


def _resolved(folder: Path, value: Any) -> Any:
    """Return the path of a file of that name in the data's folder if there is one, else the value itself."""
    return str(folder / value) if isinstance(value, str) and (folder / value).is_file() else value


def _test_set_hash(dataset: Dataset) -> str:
    """Return the hash of the test images' names and classes."""
    test = dataset.test
    text = "".join(f"{name}\0{dataset.classes[row]}\0" for name, row in zip(test.names, test.labels, strict=True))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def planned_runs(config: Config, dataset: Dataset) -> list[PlannedRun]:
    """Return every run of a config, grouped by order and seed; refuse runs that could not finish."""
    for method in config.methods:
        _check_network(f"methods.{method.name}.network", method.network, METHODS[method.kind].codec)
    runs = list(_runs(config, dataset))
    for run in runs:
        _check_run(run, dataset)
    return runs


def _check_network(key: str, network: NetworkConfig, codec: str) -> None:
    try:
        space = make_space(network.space)
        find_spec(network.backbone, linear=space.linear)
        check_codec_options(codec, network.codec_options)
    except BadInput as error:
        raise BadInput(f"{key}: {error}") from None
    if network.weights not in (PUBLISHED, RANDOM) and not Path(network.weights).is_file():
        raise BadInput(f"{key}: there is no file of weights at {network.weights}")
    folder = network.codec_pictures if CODECS[codec].needs_fit or space.centred else None
    if folder is not None and not Path(folder).is_dir():
        raise BadInput(f"{key}: there is no folder of images at {folder}")


def _check_run(run: PlannedRun, dataset: Dataset) -> None:
    """Refuse a run that could not finish."""
    first = next(run.stream.steps())
    if not np.isin(dataset.test.labels, dataset.train.labels[first]).any():
        raise BadInput(
            f"orders.{run.order.name}: there are no test images of the classes of its first step: "
            "use larger steps, or another data set"
        )
    if run.spec.offline and run.samples < len(run.stream):
        raise BadInput(
            f"methods.{run.method.name} needs all {len(run.stream):,} samples but may store only {run.samples:,}: "
            "remove the key samples"
        )


def _runs(config: Config, dataset: Dataset) -> Iterator[PlannedRun]:
    for order in config.orders:
        for seed in config.seeds:
            try:
                stream = make_stream(dataset, order.kind, seed, **order.options)
            except BadInput as error:
                raise BadInput(f"orders.{order.name}: {error}") from None
            if config.base is not None and not stream.base:
                raise BadInput(f"orders.{order.name} has no base step: set its base_classes, or remove [base]")
            base_step = next(stream.steps()) if stream.base else None
            for method in config.methods:
                method_stream = _as_one_step(stream) if METHODS[method.kind].offline else stream
                yield PlannedRun(method, order, seed, method_stream, config, base_step)


def _as_one_step(stream: Stream) -> Stream:
    """Return a stream of the same samples in a single step, for methods that do not learn continually."""
    return replace(stream, ends=(len(stream.indices),), base=False)


class Stopwatch:
    """Measures how long forward passes take on this machine, once for each network, part and batch size."""

    def __init__(self, image_size: int) -> None:
        self._image_size = image_size
        self._seconds: dict[tuple[str, int | None, int], float] = {}

    def training_step(self, network: NetworkConfig, whole: bool, batch: int) -> float:
        """Return the seconds of one training step of the top, or of the whole network, on a batch."""
        return 3.0 * self.forward_pass(network, whole, batch)  # a backward pass costs about two forward passes

    def forward_pass(self, network: NetworkConfig, whole: bool, batch: int) -> float:
        """Return the seconds of one forward pass of the top, or of the whole network, on a batch."""
        key = network.backbone, 0 if whole else network.cut, min(batch, _MAX_TIMED_BATCH)
        if key not in self._seconds:
            self._seconds[key] = self._measure(*key)
        return self._seconds[key] * batch / key[2]

    def _measure(self, name: str, cut: int | None, batch: int) -> float:
        backbone = make_backbone(name, cut, weights="random", image_size=self._image_size)
        latents = torch.zeros(batch, *backbone.latent_shape(self._image_size))
        top = with_frozen_norms(channels_last(backbone.top))
        if is_map(latents.shape[1:]):
            latents = latents.contiguous(memory_format=torch.channels_last)
        times = []
        with torch.inference_mode():
            for _ in range(3):
                start = time.perf_counter()
                top(latents)
                times.append(time.perf_counter() - start)
        return min(times)


def estimate_cost(run: PlannedRun, dataset: Dataset, stopwatch: Stopwatch) -> Estimate:
    """Return the expected costs of a run: updates by formula, seconds from measurements on this machine."""
    sizes = [len(step) for step in run.stream.steps()]
    if run.stream.base and run.method.base is not None:
        sizes = sizes[1:]
    network = run.method.network
    settings = run.method.settings
    whole = CODECS[run.spec.codec].cut == 0
    updates = settings.planned_updates(sizes)
    batch = settings.planned_batch_size()
    awake = 0 if run.spec.collects else sum(sizes)
    forward_passes = awake + _evaluations(run, dataset) * (2 if run.spec.sleeps else 1)
    training = updates / batch * stopwatch.training_step(network, whole, batch)
    inference = forward_passes / _EVALUATION_BATCH * stopwatch.forward_pass(network, whole, _EVALUATION_BATCH)
    return Estimate(updates, training + inference)


def _evaluations(run: PlannedRun, dataset: Dataset) -> int:
    """Return the number of test samples evaluated in all steps together, once per step."""
    per_class = np.bincount(dataset.test.labels, minlength=len(dataset.classes))
    seen = np.zeros(len(dataset.classes), dtype=bool)
    total = 0
    for step in run.stream.steps():
        seen[dataset.train.labels[step]] = True
        total += int(per_class[seen].sum())
    return total
