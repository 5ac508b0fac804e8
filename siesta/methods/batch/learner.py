"""What all incremental batch learners share: images and exemplars, steps, stages of training, costs and state."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from siesta.contracts import Codes, Ids, OnProgress, Resources
from siesta.errors import BadInput
from siesta.head import Head
from siesta.methods import cost
from siesta.methods.batch.augment import Augment
from siesta.methods.batch.exemplars import Exemplars
from siesta.methods.batch.heads import LinearHead, seeded
from siesta.methods.batch.network import GrowingNetwork, frozen_copy, parameter_bytes
from siesta.methods.batch.settings import BatchSettings
from siesta.methods.batch.stage import Stage, passes, step_flops
from siesta.methods.batch.step import Step
from siesta.methods.workspace import Workspace, batches, checkpoint_file
from siesta.rng import Purpose, derived_seed, generator
from siesta.selections import SELECTIONS
from siesta.sleep.budget import Budget
from siesta.sleep.loop import Load, Pace, Samples, train
from siesta.sleep.resume import TrainingCheckpoint
from siesta.store import NewSample

__all__ = ["BatchLearner"]

S = TypeVar("S", bound=BatchSettings)


class BatchLearner(Generic[S]):
    """Collects a step's images awake and trains a network on them and on exemplars asleep.

    A subclass sets `Settings` and implements `learn_step`; it overrides `make_network`, `scores` or `after_step` if it
    differs there. Before the first sleep it predicts nothing; between two sleeps it predicts the classes of the last.

    Attributes:
        codec: The codec that the method requires.
        Settings: The class of its settings.
        distils: Whether it needs the previous network.
        settings: The settings it was created with.
        workspace: Its folder.
        network: Grows with the classes.
        seed: The only source of its randomness.
    """

    codec: ClassVar[str] = "raw"
    Settings: ClassVar[type[BatchSettings]] = BatchSettings
    distils: ClassVar[bool] = True

    def __init__(self, folder: Path, settings: S, seed: int) -> None:
        self.settings = settings
        self.workspace = Workspace(folder, self.codec)
        self._folder = folder
        self.seed = seed
        self._grown: list[int] = []  # new classes of each step, from which the network can be rebuilt
        self._stages = 0
        self._forward_flops = 0.0
        self._on_progress: OnProgress | None = None
        pipeline = self.workspace.pipeline
        self.augment = Augment(settings.augment, settings.brightness, pipeline.backbone.normalization)
        self.network = self.make_network()
        self.extra: dict[str, Tensor] = {}
        saved = self.workspace.saved
        if saved is None:
            self.exemplars = Exemplars()
            self._newest = 0
            self._sleeps = 0
            self._copy_bytes = 0
            self._start_from_base()
        else:
            self._restore(dict(saved))

    # -- implemented by a subclass --------------------------------------------------------------------------------

    def make_network(self) -> GrowingNetwork:
        """Return the network without classes; here the backbone with a linear output."""
        return GrowingNetwork(self.body(), LinearHead(self.features))

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train the network, which has grown, with `train_stage`.

        Args:
            step: The step.
            previous: The network as it was before; None in the first step, or if the method does not distil.
        """
        raise NotImplementedError

    def after_step(self, step: Step) -> None:
        """Do what follows the choice of the exemplars."""

    def scores(self, images: Tensor) -> Tensor:
        """Return a score for each class: (B, 3, S, S) -> (B, K)."""
        logits: Tensor = self.network(images)
        return logits

    # -- for a subclass to use ------------------------------------------------------------------------------------

    @property
    def features(self) -> int:
        """Length of the backbone's z."""
        return self.workspace.pipeline.backbone.features

    @property
    def step_sizes(self) -> list[int]:
        """Number of new classes of each step that had any, the current one included."""
        return list(self._grown)

    def body(self) -> nn.Sequential:
        """Return a copy of the backbone with the weights that the learner was created with."""
        body = copy.deepcopy(self.workspace.pipeline.backbone.top)
        return body.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

    def base_head(self) -> Head:
        """Return the head of a base initialisation, without classes if there was none."""
        return Head.from_state(self.workspace.store.snapshot().weights["head"])

    def training(self, step: Step, **changes: Any) -> Stage:
        """Return the step's main stage: the network on all images, with the settings' schedule.

        Args:
            step: The step.
            **changes: Fields of `Stage` with other values; `loss` is one of them.
        """
        settings = self.settings
        values: dict[str, Any] = {
            "ids": step.ids,
            "epochs": settings.epochs_of(step.number),
            "top": self.network.top,
            "output": self.network.output,
            "lr": settings.lr,
            "weight_decay": settings.weight_decay_of(step.number),
            "schedule": settings.schedule_of(step.number),
        }
        return Stage(**(values | changes))

    def train_stage(self, stage: Stage) -> None:
        """Run a stage; after a kill the same sleep continues it from its checkpoint."""
        settings = self.settings
        trainee = stage.trainee(settings.momentum, settings.norms == "live")
        flops = step_flops(stage, self._black_image())
        rng = generator(self.seed, Purpose.METHOD_STAGE, self.workspace.seen, self._stages)
        pace = Pace(settings.batch_size, stage.lr, stage.schedule, int(rng.integers(2**63)))
        updates = stage.epochs * len(stage.ids)
        checkpoint = self._checkpoint(stage)
        samples = Samples(passes(stage.ids, rng), self._loader(rng))
        result = train(trainee, samples, Budget.of(updates=updates), pace, self._on_progress, checkpoint)
        self.workspace.counter.add_seconds("sleep", checkpoint.seconds)
        self.workspace.counter.add_flops("sleep", flops * result.updates, result.updates)
        self._copy_bytes = max(self._copy_bytes, parameter_bytes(*filter(None, stage.others)))
        self._stages += 1

    def balanced(self, step: Step) -> Ids:
        """Return as many images of each class as there are exemplars of an old one, selected anew for new classes."""
        quota = self.settings.quota(step.known or step.classes)
        chosen = copy.deepcopy(self.exemplars)
        self._select(chosen, step, quota)
        return chosen.ids()

    def rows_of(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Return the rows of stored images' classes, (B,)."""
        class_ids = [record.id for record in self.workspace.store.classes.all()]
        return np.searchsorted(class_ids, self.workspace.store.samples.classes_of(ids))

    def images(self, ids: Ids) -> Tensor:
        """Return stored images, (B, 3, S, S), as the network expects them."""
        return self.workspace.pipeline.decode(self.workspace.store.samples.get(ids)[1])

    @torch.inference_mode()
    def embed(self, ids: Ids, module: nn.Module | None = None) -> npt.NDArray[np.float32]:
        """Return what a module, by default the top, makes of stored images, (N, ...); counted as FLOPs of the sleep."""
        module = self.network.top if module is None else module
        module.eval()
        found = [module(self.images(ids[batch])).numpy() for batch in batches(len(ids))]
        flops = cost.count_flops(lambda: module(self._black_image()))
        self.workspace.counter.add_flops("sleep", flops * len(ids))
        return np.concatenate(found)

    # -- the `Method` protocol ------------------------------------------------------------------------------------

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Store images until the next sleep."""
        workspace = self.workspace
        workspace.validate(codes, labels)
        if len(workspace.store) + len(codes) > workspace.store.budget.capacity:
            raise BadInput(
                f"the memory holds {workspace.store.budget.capacity:,} images, too few for the exemplars and a step's "
                "images: let it hold more (the key samples of a config), and limit what is kept with exemplars"
            )
        feature = np.zeros(self.features, dtype=np.float32)
        with workspace.counter.timed("wake"):
            for batch in batches(len(codes)):
                pairs = zip(labels[batch], codes[batch], strict=True)
                workspace.store.add([NewSample(label, code.tobytes(), feature) for label, code in pairs])
        for label in labels:
            workspace.row_of(label)
        workspace.seen += len(codes)

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Train on the step's images and the exemplars, then choose which images are kept."""
        workspace = self.workspace
        new_ids, _ = workspace.store.samples.after(self._newest, len(workspace.store))
        if not len(new_ids):
            if not self._sleeps:
                raise BadInput("no samples are stored: learn some first")
            return  # nothing to learn
        self._on_progress = on_progress
        self._stages = 0
        self._copy_bytes = 0
        before, grown = copy.deepcopy(self.network), list(self._grown)
        try:
            with workspace.counter.timed("sleep"):
                step = self._learn(new_ids)
        except BaseException:  # an interrupt too: the same call starts from here again
            self.network, self._grown = before, grown
            raise
        self._newest = workspace.store.samples.newest()
        self._sleeps = step.number + 1
        self._forward_flops = 0.0

    @torch.inference_mode()
    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the best labels of each sample, best first, among the classes of the last sleep."""
        workspace = self.workspace
        workspace.validate_query(codes, top)
        if not self._grown:
            return self._predict_base(codes, top)
        self.network.eval()
        if not self._forward_flops:
            self._forward_flops = cost.count_flops(lambda: self.scores(self._black_image()))

        def score(batch: Codes) -> npt.NDArray[np.floating[Any]]:
            scores: npt.NDArray[np.float32] = self.scores(workspace.pipeline.decode(batch)).numpy()
            workspace.counter.add_flops("inference", len(scores) * self._forward_flops)
            return scores

        return workspace.rank_codes(codes, top, score)

    def resources(self) -> Resources:
        """Return the costs so far; copies are the other networks of the last sleep, images those stored now."""
        store = self.workspace.store
        network = parameter_bytes(self.network)
        parts = {
            "codes": 0,
            "images": cost.code_bytes(len(store), store.code_bytes),
            "network": network,
            "copies": self._copy_bytes,
            "codebooks": 0,
            "means": sum(tensor.nbytes for tensor in self.extra.values()),
        }
        return self.workspace.counter.resources(parameters=network // 4, bytes=parts)

    def state(self) -> dict[str, Tensor]:
        """Return network, exemplars and what they are rebuilt from."""
        return {
            **{f"network.{name}": tensor for name, tensor in self.network.state_dict().items()},
            **{f"extra.{name}": tensor for name, tensor in self.extra.items()},
            **self.exemplars.state(),
            "grown": torch.tensor(self._grown, dtype=torch.int64),
            "counts": torch.tensor([self._newest, self._sleeps, self._copy_bytes]),
        }

    def save(self) -> None:
        """Write the state into the folder, where the images are already, and delete the checkpoints of the sleep."""
        self.workspace.save(self.state())
        for index in range(max(self._stages, 1)):
            self._checkpoint_file(index).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        self.workspace.close()

    # -- parts of the above ---------------------------------------------------------------------------------------

    def _learn(self, new_ids: Ids) -> Step:
        """Train on new images and exemplars, and choose new exemplars."""
        if len(self.exemplars) == 0 and self._grown:
            self._choose_base_exemplars()
        known = sum(self._grown)
        number = max(self._sleeps, 1) if known else 0  # a base initialisation is the first step
        step = Step(number, known, len(self.workspace.labels), new_ids, self.exemplars.ids())
        previous = frozen_copy(self.network) if known and self.distils else None
        if step.new:
            self._grow(step.new)
        self.learn_step(step, previous)
        self._keep_exemplars(step)
        self.after_step(step)
        return step

    def _start_from_base(self) -> None:
        """Take classes, class vectors and images of a base initialisation as a first step, if there was one."""
        head = self.base_head()
        if len(head):
            with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH)):
                self.network.start_from(torch.tensor(head.weights()), head.scale)
            self._grown = [len(head)]
            self._newest = self.workspace.store.samples.newest()

    def _predict_base(self, codes: Codes, top: int) -> list[list[str]]:
        """Predict with the learner of the folder, for a method that does not start from its network."""
        head = self.base_head()
        if not len(head):
            raise BadInput("the method has not been trained on its classes yet: let it sleep first")
        return self.workspace.rank(codes, top, head.logits)

    def _restore(self, saved: dict[str, Tensor]) -> None:
        self._newest, self._sleeps, self._copy_bytes = saved["counts"].tolist()
        for classes in saved["grown"].tolist():
            self._grow(classes)
        self.load_network(_with_prefix("network.", saved))
        self.extra = _with_prefix("extra.", saved)
        self.exemplars = Exemplars.from_state(saved)

    def load_network(self, tensors: dict[str, Tensor]) -> None:
        """Load the tensors of a network that grew by the same steps."""
        self.network.load_state_dict(tensors)

    def _grow(self, classes: int) -> None:
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, sum(self._grown))):
            self.network.grow(classes)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._grown.append(classes)

    def _choose_base_exemplars(self) -> None:
        """Choose exemplars among the images of a base initialisation."""
        ids, _ = self.workspace.store.samples.after(0, len(self.workspace.store))
        ids = ids[ids <= self._newest]
        step = Step(0, 0, self._grown[0], ids, np.zeros(0, dtype=np.int64))
        self._select(self.exemplars, step, self.settings.quota(step.classes))
        self.workspace.store.discard(np.setdiff1d(ids, self.exemplars.ids()))

    def _keep_exemplars(self, step: Step) -> None:
        """Choose which of the step's images stay, and discard all others."""
        self._select(self.exemplars, step, self.settings.quota(step.classes))
        self.workspace.store.discard(np.setdiff1d(step.ids, self.exemplars.ids()))

    def _select(self, exemplars: Exemplars, step: Step, quota: int) -> None:
        """Select images of the classes in a step, and keep the first ones of all others."""
        exemplars.shorten(quota)
        rows = self.rows_of(step.new_ids)
        selection = SELECTIONS[self.settings.selection]
        for row in np.unique(rows).tolist():
            ids = np.concatenate([exemplars.of(row), step.new_ids[rows == row]])
            rng = generator(self.seed, Purpose.METHOD_EXEMPLARS, self.workspace.seen, row)
            exemplars.select(row, ids, self.embed(ids).reshape(len(ids), -1), quota, selection, rng)

    def _loader(self, rng: np.random.Generator) -> Load:
        """Return the function that gives the training loop images and rows."""
        (augment_rng,) = rng.spawn(1)  # a separate stream, as ids are drawn from `rng`

        def load(ids: Ids) -> tuple[Ids, Tensor, Tensor]:
            return ids, self.augment(self.images(ids), augment_rng), torch.from_numpy(self.rows_of(ids))

        return load

    def _checkpoint_file(self, stage: int) -> Path:
        path = checkpoint_file(self._folder)
        return path.with_name(f"{path.name}-{stage}") if stage else path

    def _checkpoint(self, stage: Stage) -> TrainingCheckpoint:
        """Return the checkpoint of a stage with these settings on these images."""
        identity = {
            **self.settings.model_dump(mode="json", by_alias=True),
            "seed": self.seed,
            "stage": self._stages,
            "pictures": hashlib.sha256(stage.ids.tobytes()).hexdigest(),
        }
        epoch = -(-len(stage.ids) // self.settings.batch_size)
        return TrainingCheckpoint(self._checkpoint_file(self._stages), identity, epoch=epoch)

    def _black_image(self) -> Tensor:
        size = self.workspace.pipeline.image_size
        return torch.zeros(1, 3, size, size)


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
