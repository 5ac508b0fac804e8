"""The offline learner, what all others are measured by: it sees everything, many times, in any order."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from siesta import resources
from siesta.augment import make_augmentation
from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.budget import Budget
from siesta.contracts import Augmentation, Codes, Ids, Memory, OnProgress, Resources
from siesta.errors import BadInput
from siesta.halfway import Halfway
from siesta.head import Head
from siesta.methods.crops import random_crop, random_flip
from siesta.methods.home import Home, chunks, halfway_file
from siesta.methods.settings import MethodSettings
from siesta.policies import Uniform
from siesta.sleep import Load, SleepSettings, rehearse, rows_of_samples
from siesta.store import NewSample

__all__ = ["Offline", "OfflineSettings", "OfflineWhole"]

_TRAIN = 13  # purpose number of the random stream of a training
_CROP_FLIP = "crop_flip"
_SMALLEST = 0.08  # share of a picture that a crop keeps at least, as is usual


class OfflineSettings(MethodSettings):
    """How it trains; as a sleep does, where nothing is said.

    Attributes:
        epochs: How often it goes through all samples.
        rate: The highest of the output; the backbone's own, scaled with the batch, when None.
        layer_decay: Factor on the rate for each layer below the last; the backbone's own when None.
        batch_size: Samples a step.
        optimizer: "sgd" or "adamw"; the paper's offline learner has AdamW with a rate of 0.004 and a decay of 0.05.
        schedule: How the rate runs over the epochs; the paper's offline learner has "cosine".
        momentum: Of SGD; of AdamW its first beta.
        weight_decay: Of the optimizer.
        augment: "mixup_cutmix" mixes pairs, "crop_flip" crops and flips each picture at random; None does nothing.
        frozen: Layers, from the lowest that it trains, that stay as they are.
    """

    epochs: int = Field(default=50, ge=1)
    rate: float | None = Field(default=None, gt=0)
    layer_decay: float | None = Field(default=None, ge=0, le=1)
    batch_size: int = Field(default=64, ge=1, le=65_536)
    optimizer: Literal["sgd", "adamw"] = "sgd"
    schedule: Literal["one_cycle", "steps", "cosine"] = "one_cycle"
    momentum: float = Field(default=0.9, ge=0, le=0.999)
    weight_decay: float = Field(default=1e-5, ge=0, le=1)
    augment: Literal["mixup_cutmix", "crop_flip"] | None = None
    frozen: int = Field(default=0, ge=0)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """All samples, in every epoch."""
        return self.epochs * sum(sizes)

    def planned_batch(self) -> int:
        """Samples of a training step."""
        return self.batch_size


class Offline:
    """Keeps codes, and asleep trains top and output on all of them, each time from the start weights.

    Class vectors start as the means of z under these. The learner in the folder stays as it is, but for its samples:
    what was trained lies beside it. Before the first sleep it answers by the means, later by what it trained last.
    """

    codec: ClassVar[str] = "opq"
    Settings = OfflineSettings

    def __init__(self, folder: Path, settings: OfflineSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self._halfway = halfway_file(folder)
        self._home = Home(folder, self.codec)
        self._start = {name: some.clone() for name, some in self._home.pipeline.backbone.top.state_dict().items()}
        self._loaded = self._start
        own = self._home.own or {}
        self._trained = _part("top.", own)
        self._head = Head.from_state(_part("head.", own)) if own else None

    def _use(self, top: dict[str, Tensor]) -> None:
        """Looks at samples through these weights from now on."""
        if top is not self._loaded:
            self._home.pipeline.load_top(top)
            self._loaded = top

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Keeps samples and counts them into the means of z."""
        home = self._home
        home.check(codes, labels)
        self._use(self._start)
        with home.counter.timed("wake"):
            for some in chunks(len(codes)):
                features = home.pipeline.features(codes[some])
                home.store.add(list(map(NewSample, labels[some], map(bytes, codes[some]), features)))
        for label in labels:
            home.row_of(label)
        home.seen += len(codes)
        home.counter.spend("wake", looked=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Trains from the start weights on all that is stored; one that is interrupted counts for nothing."""
        home, memory = self._home, self._home.store.memory()
        if not len(memory.ids):
            raise BadInput("there is nothing to train on: let it learn first")
        self._use(self._start)
        top = copy.deepcopy(home.pipeline.backbone.top).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for layer in list(top)[: self._settings.frozen]:
            layer.requires_grad_(False)
        head, rng = home.head(), np.random.default_rng((self._seed, _TRAIN, home.seen))
        budget = Budget.of(updates=self._settings.epochs * len(memory.ids))
        picks, settings = Uniform().picks(memory, rng), self._sleep_settings(int(rng.integers(2**63)))
        halfway = Halfway(
            self._halfway, {**self._settings.model_dump(), "seed": self._seed, "samples": len(memory.ids)}
        )
        with home.counter.timed("sleep"):
            load, network, mix = self._loader(memory, head, rng), with_frozen_norms(top), self._mixing()
            result = rehearse(network, head, picks, load, budget, settings, on_progress, mix, halfway)
        if result.interrupted:
            raise KeyboardInterrupt
        home.counter.add_seconds("sleep", halfway.seconds)
        self._trained, self._head = dict(top.state_dict()), result.head
        home.trained("sleep", result.updates)

    def _sleep_settings(self, seed: int) -> SleepSettings:
        asked = self._settings
        return SleepSettings.suited(
            self._home.pipeline.backbone.defaults,
            batch_size=asked.batch_size,
            rate=asked.rate,
            layer_decay=asked.layer_decay,
            momentum=asked.momentum,
            weight_decay=asked.weight_decay,
            mean_share=0.0,
            schedule=asked.schedule,
            optimizer=asked.optimizer,
            seed=seed,
        )

    def _mixing(self) -> Augmentation | None:
        augment = self._settings.augment
        return None if augment == _CROP_FLIP else make_augmentation(augment)

    def _loader(self, memory: Memory, head: Head, rng: np.random.Generator) -> Load:
        """What gives the rehearsal loop latents and rows of ids; nothing goes while it trains."""
        rows = rows_of_samples(memory, head)
        (crops,) = rng.spawn(1)  # a stream of its own: picks draw from the other

        def load(picked: Ids) -> tuple[Ids, Tensor, Tensor]:
            latents = self._home.pipeline.decode(self._home.store.get(picked)[1])
            if self._settings.augment == _CROP_FLIP:
                latents = random_flip(random_crop(latents, crops, _SMALLEST), crops)
            return picked, latents, rows(picked)

        return load

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """The best labels of each sample, best first, out of those that it was trained on."""
        head = self._home.head() if self._head is None else self._head
        self._use(self._start if self._head is None else self._trained)

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            scores: npt.NDArray[np.float32] = head.probabilities(torch.from_numpy(features)).numpy()
            return scores

        return self._home.answers(codes, top, score)

    def resources(self) -> Resources:
        """What it has cost so far; the start weights are a copy."""
        means = resources.means(len(self._home.labels), self._home.pipeline.backbone.features)
        return self._home.resources(buffer=True, copies=1, means=means)

    def save(self) -> None:
        """Puts what was trained into the folder, once for all; samples are there already."""
        head = {} if self._head is None else self._head.state()
        self._home.save(
            {
                **{f"top.{name}": some for name, some in self._trained.items()},
                **{f"head.{name}": some for name, some in head.items()},
            }
        )
        self._halfway.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets go of the files."""
        self._home.store.close()


class OfflineWhole(Offline):
    """The same on pictures, with every layer above the cut: the whole network learns."""

    codec: ClassVar[str] = "raw"


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those whose names begin so, without that beginning."""
    return {name[len(prefix) :]: some for name, some in tensors.items() if name.startswith(prefix)}
