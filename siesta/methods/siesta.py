"""SIESTA: the learner of this package, on precomputed codes.

Its variants are settings of one method: `siesta_paper` is as published, `siesta_aug` mixes pairs asleep, `siesta_awake`
never sleeps, `siesta_uniform` rehearses without balancing classes, `siesta_er` stores images and trains the whole
network.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from siesta.contracts import Codes, OnProgress, Resources
from siesta.head.kinds import COSINE
from siesta.learner import Siesta
from siesta.methods import cost
from siesta.methods.settings import AugmentationName, MethodSettings, PolicyName, SelectionName
from siesta.methods.workspace import Workspace, checkpoint_file
from siesta.pipeline import Pipeline
from siesta.policies import DEFAULT_POLICY
from siesta.rng import Purpose, generator
from siesta.selections import SELECTIONS
from siesta.sleep.options import SleepOptions
from siesta.sleep.resume import TrainingCheckpoint
from siesta.store import Store

__all__ = ["SiestaER", "SiestaMethod", "SiestaSettings"]


class SiestaSettings(MethodSettings):
    """Settings of a sleep and of the head; `siesta_paper` in `METHODS` has the paper's.

    Attributes:
        updates: m, updates of each sleep; 0 never sleeps.
        policy: Name of the rehearsal policy.
        augment: Name of the augmentation of pairs; None mixes nothing.
        batch_size: Samples in each step.
        lr: OneCycle maximum of the last layer; None takes the backbone's, scaled with the batch size.
        layer_decay: Factor on the learning rate for each layer below the last; None takes the backbone's.
        mean_share: Share of the class means in the class vectors after a sleep; 0 is the paper's variant.
        crop: Least share of the area of a feature map that a random crop of it keeps asleep; 1 crops nothing, as in the
            paper and in all runs that version 0.1 recorded.
        selection: Name of the selection that ranks the stored samples of each class at the end of a step: a full memory
            evicts the last of the largest class first. None evicts at random, as the paper does.
        head: Name of the head that predicts, as in `Siesta.create`; "cosine" is the paper's, and that of all runs
            that version 0.1 recorded.
    """

    updates: Annotated[int, Field(ge=0)] = 9600
    policy: PolicyName = DEFAULT_POLICY
    augment: AugmentationName | None = None
    batch_size: Annotated[int, Field(ge=1)] = 64
    lr: float | None = Field(serialization_alias="rate", default=None, gt=0)
    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    mean_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    crop: Annotated[float, Field(gt=0, le=1)] = 0.4
    selection: SelectionName | None = None
    head: Literal["cosine", "discriminant"] = "discriminant"

    @model_serializer(mode="wrap")
    def _without_defaults_of_later_versions(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what version 0.1 did not have, unless it is used: recorded runs keep their hashes."""
        values: dict[str, Any] = serialize(self)
        later = {"selection": None, "head": COSINE, "crop": 1.0}
        return {name: value for name, value in values.items() if name not in later or value != later[name]}

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Return the updates of one sleep for each step."""
        return self.updates * len(sizes)

    def planned_batch_size(self) -> int:
        """Return the number of samples in a training step."""
        return self.batch_size


class SiestaMethod:
    """A `Siesta` that learns codes and sleeps at the end of each step.

    Attributes:
        codec: The codec that the method requires.
        Settings: The class of its settings.
        workspace: Its folder.
    """

    codec: ClassVar[str] = "opq"
    Settings: ClassVar[type[MethodSettings]] = SiestaSettings

    def __init__(self, folder: Path, settings: SiestaSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._checkpoint = checkpoint_file(folder)
        self._learner: Siesta
        self.workspace = Workspace(folder, self.codec, self._load_learner)

    def _load_learner(self, store: Store) -> Pipeline:
        """Open the learner on the workspace's store; they share its pipeline."""
        self._learner = Siesta(store)
        return self._learner.pipeline

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Store samples and add them to the class means."""
        workspace = self.workspace
        workspace.validate(codes, labels)
        with workspace.counter.timed("wake"):
            self._learner.learn_encoded(codes, labels)
        for label in labels:
            workspace.row_of(label)
        workspace.seen += len(codes)
        workspace.counter.add("wake", images=len(codes))

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Sleep for m updates, then rank the memory; an interrupt raises `KeyboardInterrupt`."""
        if self._settings.updates:
            self._train(on_progress)
        if self._settings.selection is not None:
            rng = generator(self._seed, Purpose.METHOD_SELECTION, self.workspace.seen)
            self.workspace.rank_stored(SELECTIONS[self._settings.selection], rng)

    def _train(self, on_progress: OnProgress | None) -> None:
        checkpoint = TrainingCheckpoint(self._checkpoint, {})
        with self.workspace.counter.timed("sleep"):
            report = self._learner.sleep(self._options(), on_progress=on_progress, checkpoint=checkpoint)
        self.workspace.counter.add_seconds("sleep", checkpoint.seconds)
        self.workspace.count_updates("sleep", report.updates)
        self.workspace.counter.add("sleep", codes=report.embedded)

    def _options(self) -> SleepOptions:
        settings = self._settings
        return SleepOptions(
            updates=settings.updates,
            policy=settings.policy,
            augment=settings.augment,
            batch_size=settings.batch_size,
            lr=settings.lr,
            layer_decay=settings.layer_decay,
            mean_share=settings.mean_share,
            crop=settings.crop,
            seed=int(generator(self._seed, Purpose.METHOD_SLEEP, self.workspace.seen).integers(2**63)),
        )

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the best labels of each sample, best first."""
        workspace = self.workspace
        workspace.validate_query(codes, top)
        with workspace.counter.timed("inference"):
            predictions = self._learner.predict_encoded(codes, top)
        workspace.counter.add("inference", images=len(codes), scores=len(codes) * len(workspace.labels))
        return [[label for label, _ in prediction.top] for prediction in predictions]

    def resources(self) -> Resources:
        """Return the costs so far."""
        means = cost.mean_bytes(len(self.workspace.labels), self._learner.pipeline.backbone.features)
        return self.workspace.resources(buffer=True, means=means + self._learner.info().bytes.statistics)

    def save(self) -> None:
        """Write the costs beside the learner, which is on disk already, and delete the checkpoint."""
        self.workspace.save({})
        self._checkpoint.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the learner."""
        self._learner.close()


class SiestaER(SiestaMethod):
    """SIESTA on stored images, the paper's veridical variant: the whole network is trained asleep."""

    codec: ClassVar[str] = "raw"
