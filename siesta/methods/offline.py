"""The offline learner, the upper bound: it trains on all samples, many times, in random order."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer
from torch import Tensor, nn

from siesta.backbones import RANDOM
from siesta.backbones.arrays import to_arrays
from siesta.backbones.layers import channels_last
from siesta.contracts import Augmentation, Codes, Ids, Memory, OnProgress, Resources
from siesta.errors import BadInput
from siesta.head import Discriminant, FeatureStatistics, Head
from siesta.methods import cost
from siesta.methods.crops import random_crop, random_flip
from siesta.methods.settings import MethodSettings
from siesta.methods.workspace import Workspace, batches, checkpoint_file
from siesta.policies import Uniform
from siesta.rng import Purpose, generator
from siesta.sleep.augment import make_augmentation
from siesta.sleep.budget import Budget
from siesta.sleep.calibration import softmax
from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.loop import Load, Samples, rehearse, rows_of_samples
from siesta.sleep.objective import Objective
from siesta.sleep.options import SleepOptions
from siesta.sleep.resume import TrainingCheckpoint
from siesta.sleep.settings import SleepSettings
from siesta.store import NewSample

__all__ = ["Offline", "OfflineSettings", "OfflineWhole"]

_CROP_FLIP = "crop_flip"
_MIN_AREA = 0.08  # of a random resized crop, the usual value


class OfflineSettings(MethodSettings):
    """Settings of the training; the defaults are those of a sleep.

    Attributes:
        epochs: Number of passes through all samples.
        lr: Maximum learning rate of the output; None takes the backbone's, scaled with the batch size.
        layer_decay: Factor on the learning rate for each layer below the output; None takes the backbone's.
        batch_size: Samples in each step.
        optimizer: "sgd" or "adamw". The paper uses AdamW with a learning rate of 0.004 and a weight decay of 0.05.
        schedule: Learning rate over the epochs. The paper uses "cosine".
        momentum: Of SGD; the first beta of AdamW.
        weight_decay: Of the optimizer.
        augment: "mixup_cutmix" mixes pairs, "crop_flip" crops and flips each image at random, None does nothing.
        frozen: How many of the lowest layers of the top are not trained.
        readout: The head that predicts: "cosine" is the trained output, "discriminant" SIESTA's linear discriminant
            over z of all stored samples under the trained top.
    """

    epochs: int = Field(default=50, ge=1)
    lr: float | None = Field(serialization_alias="rate", default=None, gt=0)
    layer_decay: float | None = Field(default=None, ge=0, le=1)
    batch_size: int = Field(default=64, ge=1, le=65_536)
    optimizer: Literal["sgd", "adamw"] = "sgd"
    schedule: Literal["one_cycle", "steps", "cosine"] = "one_cycle"
    momentum: float = Field(default=0.9, ge=0, le=0.999)
    weight_decay: float = Field(default=1e-5, ge=0, le=1)
    augment: Literal["mixup_cutmix", "crop_flip"] | None = None
    frozen: int = Field(default=0, ge=0)
    readout: Literal["cosine", "discriminant"] = "cosine"

    @model_serializer(mode="wrap")
    def _without_default_readout(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what version 0.1 did not have, unless it is used: recorded runs keep their hashes."""
        values: dict[str, Any] = serialize(self)
        return {name: value for name, value in values.items() if (name, value) != ("readout", "cosine")}

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Return one update for each sample and epoch."""
        return self.epochs * sum(sizes)

    def planned_batch_size(self) -> int:
        """Return the number of samples in a training step."""
        return self.batch_size


class Offline:
    """Stores codes awake; each sleep trains top and output on all of them, from the initial weights.

    Class vectors start as the means of z under these weights. Where the weights were random, the batch norms of the top
    learn their statistics too. Only samples are added to the learner in the folder; the trained network is saved beside
    it. Predictions come from the class means before the first sleep and from the last trained network after it.

    Attributes:
        codec: The codec that the method requires.
        Settings: The class of its settings.
        workspace: Its folder.
    """

    codec: ClassVar[str] = "opq"
    Settings: ClassVar[type[MethodSettings]] = OfflineSettings

    def __init__(self, folder: Path, settings: OfflineSettings, seed: int) -> None:
        self.workspace = Workspace(folder, self.codec)
        self._settings = settings
        self._seed = seed
        self._checkpoint = checkpoint_file(folder)
        initial = self.workspace.pipeline.backbone.top.state_dict()
        self._initial = {name: tensor.clone() for name, tensor in initial.items()}
        self._loaded = self._initial
        saved = self.workspace.saved or {}
        self._trained = _with_prefix("top.", saved)
        self._head = Head.from_state(to_arrays(_with_prefix("head.", saved))) if saved else None
        sums = {name: tensor.numpy() for name, tensor in _with_prefix("statistics.", saved).items()}
        self._discriminant = Discriminant(FeatureStatistics.from_arrays(sums)) if sums else None

    def _load_top(self, top: dict[str, Tensor]) -> None:
        """Load weights into the pipeline unless they are loaded already."""
        if top is not self._loaded:
            self.workspace.pipeline.load_top(to_arrays(top))
            self._loaded = top

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Store samples and add them to the class means."""
        workspace = self.workspace
        workspace.validate(codes, labels)
        self._load_top(self._initial)
        with workspace.counter.timed("wake"):
            for batch in batches(len(codes)):
                features = workspace.pipeline.features(codes[batch])
                workspace.store.add(list(map(NewSample, labels[batch], map(bytes, codes[batch]), features)))
        for label in labels:
            workspace.row_of(label)
        workspace.seen += len(codes)
        workspace.counter.add("wake", images=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Train from the initial weights on all stored samples; an interrupt raises `KeyboardInterrupt`."""
        workspace = self.workspace
        memory = workspace.store.samples.memory()
        if not len(memory.ids):
            raise BadInput("no samples are stored: learn some first")
        self._load_top(self._initial)
        top = channels_last(copy.deepcopy(workspace.pipeline.backbone.top))
        head = workspace.head()
        rng = generator(self._seed, Purpose.METHOD_TRAINING, workspace.seen)
        sample_ids = Uniform().sample_ids(memory, rng)
        settings = self._sleep_settings(int(rng.integers(2**63)))
        checkpoint = self._training_checkpoint(len(memory.ids))
        with workspace.counter.timed("sleep"):
            result = rehearse(
                top,
                head,
                Samples(sample_ids, self._loader(memory, head, rng), self._augmentation()),
                Budget.of(updates=self._settings.epochs * len(memory.ids)),
                settings,
                on_progress,
                checkpoint,
                self._objective(),
            )
        workspace.counter.add_seconds("sleep", checkpoint.seconds)
        self._trained = dict(top.state_dict())
        self._head = result.head
        workspace.count_updates("sleep", result.updates)
        if self._settings.readout == "discriminant":
            self._fit_discriminant()

    def _fit_discriminant(self) -> None:
        """Make the discriminant of all stored samples under the trained top; its classes are rows."""
        workspace = self.workspace
        self._load_top(self._trained)
        statistics = FeatureStatistics.empty(workspace.pipeline.backbone.features)
        with workspace.counter.timed("sleep"):
            for codes, rows in workspace.stored_samples():
                statistics.add(rows, workspace.pipeline.features(codes))
                workspace.counter.add("sleep", codes=len(codes))
        self._discriminant = Discriminant(statistics)

    def _objective(self) -> Objective:
        """Return what is trained: all but the lowest layers, with live norms in a network trained from scratch."""
        return Objective(norms="live" if self._from_scratch() else "frozen", parameters=self._trained_parameters)

    def _from_scratch(self) -> bool:
        return bool(self.workspace.store.settings["weights"]["from"] == RANDOM)

    def _trained_parameters(self, top: nn.Sequential, output: CosineOutput) -> Iterator[nn.Parameter]:
        yield from top[self._settings.frozen :].parameters()
        yield from output.parameters()

    def _training_checkpoint(self, samples: int) -> TrainingCheckpoint:
        """Return the checkpoint of a training with these settings on so many samples."""
        identity = {**self._settings.model_dump(by_alias=True), "seed": self._seed, "samples": samples}
        if self._from_scratch():
            identity["norms"] = "live"  # version 0.1 trained such networks with frozen norms
        return TrainingCheckpoint(self._checkpoint, identity)

    def _sleep_settings(self, seed: int) -> SleepSettings:
        settings = self._settings
        options = SleepOptions(
            batch_size=settings.batch_size,
            lr=settings.lr,
            layer_decay=settings.layer_decay,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            mean_share=0.0,
            crop=1.0,
            schedule=settings.schedule,
            optimizer=settings.optimizer,
        )
        return options.settings(self.workspace.pipeline.backbone.defaults, seed)

    def _augmentation(self) -> Augmentation | None:
        augment = self._settings.augment
        return None if augment == _CROP_FLIP else make_augmentation(augment)

    def _loader(self, memory: Memory, head: Head, rng: np.random.Generator) -> Load:
        """Return the function that gives the rehearsal loop latents and rows of sample ids."""
        rows = rows_of_samples(memory, head)
        (crop_rng,) = rng.spawn(1)  # a separate stream, as sample ids are drawn from `rng`

        def load(sample_ids: Ids) -> tuple[Ids, Tensor, Tensor]:
            latents = self.workspace.pipeline.decode(self.workspace.store.samples.get(sample_ids)[1])
            if self._settings.augment == _CROP_FLIP:
                latents = random_flip(random_crop(latents, crop_rng, _MIN_AREA), crop_rng)
            return sample_ids, latents, rows(sample_ids)

        return load

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the best labels of each sample, best first, among the classes that it was trained on."""
        head = self.workspace.head() if self._head is None else self._head
        self._load_top(self._initial if self._head is None else self._trained)

        def score(features: npt.NDArray[np.float32]) -> npt.NDArray[np.floating[Any]]:
            if self._discriminant is not None:
                return _scores_of_rows(self._discriminant, features)
            scores: npt.NDArray[np.floating[Any]] = softmax(head.logits(features))
            return scores

        return self.workspace.rank(codes, top, score)

    def resources(self) -> Resources:
        """Return the costs so far; the initial weights count as a copy."""
        means = cost.mean_bytes(len(self.workspace.labels), self.workspace.pipeline.backbone.features)
        means += sum(array.nbytes for array in self._statistics().values())
        return self.workspace.resources(buffer=True, copies=1, means=means)

    def state(self) -> dict[str, Tensor]:
        """Return the trained top and head, and the statistics of a discriminant; nothing before the first sleep."""
        head = {} if self._head is None else self._head.state()
        return {
            **{f"top.{name}": tensor for name, tensor in self._trained.items()},
            **{f"head.{name}": torch.from_numpy(array) for name, array in head.items()},
            **{f"statistics.{name}": torch.from_numpy(array) for name, array in self._statistics().items()},
        }

    def _statistics(self) -> dict[str, npt.NDArray[Any]]:
        return {} if self._discriminant is None else self._discriminant.base.arrays()

    def save(self) -> None:
        """Write the trained network into the folder, where the samples are already, and delete the checkpoint."""
        self.workspace.save(self.state())
        self._checkpoint.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        self.workspace.close()


class OfflineWhole(Offline):
    """The offline learner on stored images, with the cut at the bottom: the whole network is trained."""

    codec: ClassVar[str] = "raw"


def _scores_of_rows(discriminant: Discriminant, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return scores (B, K) of z (B, D), a column for each row; one without stored samples is the last choice."""
    rows = discriminant.class_ids
    scores = np.full((len(features), int(rows[-1]) + 1), -np.inf, dtype=np.float32)
    scores[:, rows] = discriminant.logits(features)
    return scores


def _with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names start with a prefix, without it."""
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
