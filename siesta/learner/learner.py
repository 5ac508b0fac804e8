"""`Siesta`: the learner as the library offers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy.typing as npt

from siesta.contracts import Codec, Codes, OnProgress, Prediction
from siesta.engines import choose_engine
from siesta.head import Head
from siesta.learner.create import create_store, removed_if_unusable
from siesta.learner.create_options import CreateFields, CreateOptions
from siesta.learner.edits import Edits
from siesta.learner.info import LearnerInfo, learner_info, rejected_labels
from siesta.learner.learn import OnlineLearning
from siesta.learner.predict import predict_codes
from siesta.learner.recode import replace_codec
from siesta.learner.sleep import sleep, sleep_async
from siesta.learner.state import BATCH_SIZE, LearnerState
from siesta.pipeline import InputLike, Pipeline, batched, resolve_device
from siesta.sleep.job import SleepJob
from siesta.sleep.options import SleepFields, SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.reporter import Reporter
from siesta.store import ClassRecord, Generation, Store
from siesta.store.thumbnails import Thumbnails

if TYPE_CHECKING:
    from siesta.sleep.resume import TrainingCheckpoint

__all__ = ["IN_MEMORY", "Siesta"]

IN_MEMORY = ":memory:"
"""The path of a learner that is kept in RAM."""


class Siesta:
    """A classifier of images, or of vectors, that learns online while awake and trains its network while asleep.

    Each labelled image is learned at once, in one pass: its compressed features are stored under a byte budget, and
    the mean of its class moves. A sleep trains the upper layers on stored samples. A learner lives in a directory. If
    it is created with `features`, it takes vectors of that length where these methods say images.

    Example:
        >>> import numpy as np
        >>> learner = Siesta.create(":memory:", memory="1MB", image_size=32)
        >>> night, noise = np.zeros((32, 32, 3), np.uint8), np.random.default_rng(0).bytes(32 * 32 * 3)
        >>> snow = np.frombuffer(noise, np.uint8).reshape(32, 32, 3)
        >>> learner.learn_many([night, snow], ["night", "snow"])
        [1, 2]
        >>> learner.predict_one(snow).label
        'snow'
        >>> learner.sleep(updates=4, batch_size=2).updates
        4
    """

    def __init__(self, store: Store, device: str = "cpu", engine: str | None = None) -> None:
        """Load a learner from an open store; most callers use `create` or `open`.

        Args:
            store: The store; `close` closes it.
            device: The torch device.
            engine: As in `create`.
        """
        self._store = store
        self._state = LearnerState(store, device, engine)
        self._learning = OnlineLearning(self._state)
        self._edits = Edits(self._state)

    # -- life cycle -----------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        device: str = "cpu",
        engine: str | None = None,
        **fields: Unpack[CreateFields],
    ) -> Siesta:
        """Create an empty learner.

        Args:
            path: The directory to create, or ":memory:" to keep the learner in RAM.
            device: The torch device.
            engine: What runs the network outside of sleep, "onnx" or "torch"; the device decides when None.
            **fields: Fields of `CreateOptions`: memory, backbone, features, base, seed and others.
        """
        options = CreateOptions(**fields)
        folder = None if str(path) == IN_MEMORY else Path(path)
        store = create_store(folder, options, resolve_device(device), engine)
        with removed_if_unusable(store):
            return cls(store, device, engine)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        to_sleep: bool = False,
        durability: str = "process",
        device: str = "cpu",
        engine: str | None = None,
    ) -> Siesta:
        """Open a learner on disk; what other processes learn or change is loaded automatically.

        Args:
            path: The learner's directory.
            read_only: Open it for prediction only; this needs no lock.
            to_sleep: Open it for sleep only; another process may learn meanwhile.
            durability: What a learned sample survives, "process" (the end of the process) or "power" (a loss of power).
            device: The torch device.
            engine: The inference engine, as in `create`.
        """
        choose_engine(engine, resolve_device(device))  # fails before a writer in this process is closed for this one
        store = Store.open(Path(path), "read" if read_only else "sleep" if to_sleep else "teach", durability)
        try:
            return cls(store, device, engine)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close the files and release the lock."""
        self._store.close()

    def dump(self) -> Path | dict[str, Any]:
        """Return the folder of a learner; of one in memory everything it is, for `Store.restore`."""
        return self._store.dump() if self._store.path is None else self._store.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: object) -> None:
        self.close()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that the learner was created with, as plain values."""
        return MappingProxyType(self._store.settings)

    @property
    def pipeline(self) -> Pipeline:
        """Bottom, codec and top with the weights in use."""
        return self._state.pipeline

    @property
    def head(self) -> Head:
        """The class vectors; they include every sample that was learned before the learner was last used."""
        return self._state.head

    @property
    def generation(self) -> int:
        """The number of the loaded weights."""
        return self._state.generation

    # -- learn and predict ----------------------------------------------------------------------------------------

    def read(self, image: InputLike) -> npt.NDArray[Any]:
        """Return an image as the network sees it, (S, S, 3) bytes; every method accepts such an array unchanged."""
        return self._state.read(image)

    def learn_one(self, image: InputLike, label: str) -> int:
        """Learn one labelled image at once; return the id of the stored sample."""
        return self.learn_many([image], [label])[0]

    def learn_many(
        self, images: Iterable[InputLike], labels: Iterable[str], keys: Iterable[int | None] | None = None
    ) -> list[int]:
        """Learn labelled images in order, 32 in one transaction; return the ids of the stored samples.

        Args:
            images: Paths, PIL images or arrays, or vectors; may be a generator.
            labels: One for each image.
            keys: A 64-bit number for each image, by which `known_keys` finds its sample.

        Raises:
            SiestaError: The transaction that failed stored nothing; `safe` is the number of samples stored before.
        """
        return self._learning.learn(images, labels, keys)

    def encode(self, images: Iterable[InputLike]) -> Codes:
        """Return the codes (B, code_bytes) of images, for `learn_encoded` and `predict_encoded`."""
        return self._state.encode(images)

    def learn_encoded(self, codes: Codes, labels: Sequence[str], keys: Sequence[int | None] | None = None) -> list[int]:
        """Learn samples that are encoded already, as `learn_many` does; return the ids of the stored samples.

        Args:
            codes: What `encode` returned for the images, (B, code_bytes).
            labels: One for each.
            keys: As in `learn_many`, one for each.
        """
        return self._learning.learn_encoded(codes, labels, keys)

    def reject(self, image: InputLike, label: str) -> int:
        """Lower the score of a label for what looks like this image; return an id that `forget_sample` takes back."""
        return self._learning.reject(image, label)

    def known_keys(self, keys: Iterable[int]) -> dict[int, int]:
        """Return those keys that a stored sample was learned with, each with the id of its sample."""
        return self._store.samples.known_keys(keys)

    def predict_one(
        self, image: InputLike, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> Prediction:
        """Return the best label for an image with its probability, and the `top` best; see `predict_encoded`."""
        return self.predict_many([image], top, threshold=threshold, error_rate=error_rate)[0]

    def predict_many(
        self,
        images: Iterable[InputLike],
        top: int = 5,
        *,
        threshold: float | None = None,
        error_rate: float | None = None,
    ) -> list[Prediction]:
        """Return a prediction for each image, in order; see `predict_encoded`."""
        predictions: list[Prediction] = []
        for batch in batched(images, BATCH_SIZE):
            self._state.refresh()  # before encoding: another process may have replaced the codec
            predictions += predict_codes(self._state, self.encode(batch), top, threshold, error_rate)
        return predictions

    def predict_encoded(
        self, codes: Codes, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> list[Prediction]:
        """Return a prediction for each sample that is encoded already.

        Args:
            codes: What `encode` returned for the images, (B, code_bytes).
            top: The number of labels to return for each.
            threshold: A familiarity below it gives the label "unknown"; see `Prediction`.
            error_rate: Use the threshold above which at most this share of labels is wrong, with 95 % confidence.
        """
        self._state.refresh()
        return predict_codes(self._state, codes, top, threshold, error_rate)

    def threshold(self, error_rate: float) -> float:
        """Return the familiarity above which at most `error_rate` of answers are wrong; see `Confidence.threshold`."""
        return self._state.confidence.threshold(error_rate)

    # -- sleep ----------------------------------------------------------------------------------------------------

    def sleep(
        self,
        options: SleepOptions | None = None,
        *,
        on_progress: OnProgress | None = None,
        reporter: Reporter | None = None,
        checkpoint: TrainingCheckpoint | None = None,
        **fields: Unpack[SleepFields],
    ) -> SleepReport:
        """Train top and head on stored samples, then use the new weights.

        Without a budget it ends when held-out samples stop gaining. Ctrl-C, or `on_progress` returning True, ends it
        early and keeps what was trained. Unless the budget is a time, the same seed gives the same weights.

        Args:
            options: How to sleep.
            on_progress: Called after each batch.
            reporter: Writes the status that other processes read; created here when None.
            checkpoint: Keeps a sleep with an update budget that is killed or interrupted; the same call continues it.
            **fields: Fields of `SleepOptions`, instead of `options` or in place of some of its fields.
        """
        return sleep(self._state, SleepOptions.merged(options, fields), on_progress, reporter, checkpoint)

    def sleep_async(
        self, options: SleepOptions | None = None, *, threads: int = 1, nice: int = 10, **fields: Unpack[SleepFields]
    ) -> SleepJob:
        """Sleep in a background process, while this one goes on learning and predicting with the weights it has.

        The process outlives this one. Its new weights are used by every process that has the learner open.

        Args:
            options: How to sleep. Policy and augmentation are given by name, `until` as "HH:MM".
            threads: The number of torch threads of the process.
            nice: Its niceness, 0 to 19: how far it yields to other processes.
            **fields: Fields of `SleepOptions`, instead of `options` or in place of some of its fields.

        Returns:
            The job, which can be followed, paused and ended.
        """
        return sleep_async(self._state, SleepOptions.merged(options, fields), threads, nice)

    # -- edits ----------------------------------------------------------------------------------------------------

    def rename(self, label: str, new: str) -> None:
        """Rename a class."""
        self._edits.rename(label, new)

    def merge(self, label: str, into: str) -> None:
        """Merge the class `label` into the class `into`, as if its samples had been learned as `into`."""
        self._edits.merge(label, into)

    def forget(self, label: str) -> None:
        """Remove a class: its samples, and its class vector in every generation that is kept.

        No file of the learner holds its codes afterwards. The weights of the upper layers do not change.
        """
        self._edits.forget(label)

    def forget_sample(self, sample_id: int) -> None:
        """Remove one sample or rejection, given the id that `learn_one` or `reject` returned."""
        self._edits.forget_sample(sample_id)

    def correct(self, sample_id: int, label: str) -> int:
        """Replace a sample by the same one with another label; return the id of the new sample."""
        return self._edits.correct(sample_id, label)

    def renew_codec(self, codec: Codec, error: float, pictures: Mapping[int, InputLike]) -> int:
        """Encode all stored samples with another codec and use it from now on; `siesta.learner.refit` fits one.

        It returns the number of samples that were encoded from their images.

        Args:
            codec: A codec for latents of this learner's shape.
            error: Its relative error on what it was fitted on.
            pictures: Images of some samples, by sample id. The codes of the others are computed from what the old codec
                kept of them, which loses precision a second time.
        """
        return replace_codec(self._state, codec, error, pictures)

    def generations(self) -> list[Generation]:
        """Return the generations of weights that are kept, oldest first, with the reports of their sleeps."""
        return self._store.generations.all()

    def roll_back(self, number: int) -> None:
        """Activate the weights of another generation; the samples learned since it was made are counted in."""
        self._edits.roll_back(number)

    # -- information ----------------------------------------------------------------------------------------------

    def info(self) -> LearnerInfo:
        """Return what the learner knows, how large it is, and what it was made with."""
        return learner_info(self._store, self.pipeline.network)

    def classes(self) -> list[ClassRecord]:
        """Return all classes, oldest first, with how many samples of each were learned and are stored."""
        return self._store.classes.all()

    def rejections(self) -> dict[int, str]:
        """Return the label of each rejection, by its id, oldest first."""
        return rejected_labels(self._store)

    def label_of(self, sample_id: int) -> str:
        """Return the label of a stored sample."""
        class_id = self._store.samples.class_of(sample_id)
        return next(record.label for record in self.classes() if record.id == class_id)

    def active_generation(self) -> int:
        """Return the number of the weights in use, even if they are not loaded yet (compare `generation`)."""
        return self._store.generations.active()

    def data_version(self) -> int:
        """Return a number that changes whenever another process has changed the learner."""
        return self._store.data_version()

    def check_folder(self) -> None:
        """Raise `DiskRefused` if the learner's folder was removed, moved or replaced since it was opened."""
        self._store.check_place()

    @property
    def thumbnails(self) -> Thumbnails:
        """The thumbnails of stored samples."""
        return self._store.thumbnails

    def keep_thumbnails(self, pictures: Mapping[int, bytes]) -> None:
        """Store encoded thumbnails of samples, by sample id; they count in the byte budget."""
        self._store.keep_thumbnails(pictures)

    def drop_thumbnails(self) -> None:
        """Remove all thumbnails and overwrite the space that they took."""
        self._store.drop_thumbnails()
