"""What a learner holds in memory: weights, head and class names, kept in step with its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes
from siesta.errors import BadInput, Damaged, SiestaError
from siesta.head import Discriminant, FeatureStatistics, Head
from siesta.head.discriminant import discriminant_for
from siesta.head.kinds import DISCRIMINANT
from siesta.learner.rejections import Rejections
from siesta.malloc import return_freed_memory
from siesta.pipeline import InputLike, Pipeline, batched
from siesta.sleep.calibration import Confidence
from siesta.store import RecentSum, Snapshot, Store, StoredSample, StoredStatistics

__all__ = ["BATCH_SIZE", "LearnerState", "stored_statistics"]

BATCH_SIZE = 32
"""Images or codes that pass through the network at once."""

_FEWEST_TO_FOLD = 32
_MOST_TO_FOLD = 256


def fold_size(discriminant: Discriminant) -> int:
    """Return how many added samples are folded into the sums at once: an eighth of those in them, 32 to 256."""
    return min(max(discriminant.base.samples // 8, _FEWEST_TO_FOLD), _MOST_TO_FOLD)


def stored_statistics(stored: StoredStatistics) -> FeatureStatistics | None:
    """Return the statistics that were read with all samples counted in them; None if there are none."""
    if stored.arrays is None:
        return None
    if len(stored.arrays["counts"]):
        statistics = FeatureStatistics.from_arrays(stored.arrays)
    elif len(stored.since.ids):
        statistics = FeatureStatistics.empty(stored.since.features.shape[1])
    else:
        return None
    if len(stored.since.ids):
        statistics.add(stored.since.classes, stored.since.features)
    return statistics


def _make_discriminant(arrays: Mapping[str, npt.NDArray[Any]], head: Head) -> Discriminant:
    """Return the discriminant on stored statistics."""
    width = head.weights().shape[1]
    statistics = FeatureStatistics.from_arrays(arrays) if len(arrays["counts"]) else FeatureStatistics.empty(width)
    return discriminant_for(statistics, head)


class LearnerState:
    """The store of a learner and what is loaded from it.

    Other processes may learn or sleep on the same store; `refresh` loads what they changed.

    Attributes:
        store: Everything that lasts.
        pipeline: From images to codes and features, with the loaded weights.
        head: Class vectors of the last sleep, with the samples learned since counted in.
        discriminant: What predicts, on the statistics of the counted samples; None for a learner without statistics.
        labels: Label of each class id.
        confidence: Calibration of the scores, measured by the last sleep.
        rejections: Images for which a label was said to be wrong.
        generation: Number of the loaded weights.
    """

    def __init__(self, store: Store, device: str, engine: str | None) -> None:
        """Load the active generation of a store.

        Args:
            store: An open store.
            device: The torch device.
            engine: The inference engine; chosen by the device when None.
        """
        self.store = store
        self.discriminant: Discriminant | None = None
        self._statistics_number: int | None = None
        self._newest_counted = 0
        self._asleep = False
        self.rejections = Rejections()
        self._version: int | None = store.data_version()
        with return_freed_memory():
            snapshot = store.snapshot()
        self._codec_hash = store.constants.codec_hash()
        self.pipeline = Pipeline.from_store(store, device, engine, snapshot.weights["top"])
        self._use(snapshot)
        if store.session.teaches:
            self.fold()

    @property
    def classifier(self) -> Head | Discriminant:
        """What predicts: the discriminant, or the cosine head of a learner without statistics."""
        return self.head if self.discriminant is None else self.discriminant

    def load(self) -> Snapshot:
        """Load the codec if it was replaced, the active weights and the class sums since; return the latter two."""
        self._version = None  # until everything is loaded
        version = self.store.data_version()  # read first: a later change is seen by the next `refresh`
        codec_hash = self.store.constants.codec_hash()
        if codec_hash != self._codec_hash:
            self.pipeline.load_codec(self.store.settings["codec"], self.store.constants.read("codec"))
            self._codec_hash = codec_hash
        snapshot = self.store.snapshot()
        self.pipeline.load_top(snapshot.weights["top"])
        self._use(snapshot)
        self._version = version
        return snapshot

    def refresh(self) -> None:
        """Load what other processes have changed since the last call: samples, classes, weights or the codec."""
        if self._version is None:
            self.load()
            return
        version = self.store.data_version()
        if version == self._version:
            return
        moment = self.store.row_snapshot(self._statistics_number, self._newest_counted)
        loaded = (self.generation, self._hashes, self._codec_hash)
        if (moment.generation.number, moment.generation.hashes, self.store.constants.codec_hash()) != loaded:
            self.load()
        elif self.head.recent_class_ids() - {recent.class_id for recent in moment.recent}:
            self.load()  # a class has no recent samples any more: some were forgotten
        else:
            self._version = version
            self.labels = {record.id: record.label for record in moment.classes}
            self.update_means(moment.recent)
            self._use_statistics(moment.statistics)
            self._use_rejections(moment.rejected)

    def update_means(self, sums: Iterable[RecentSum]) -> None:
        """Set the running means of the head to sums of features since the last sleep, as the store has them."""
        for recent in sums:
            self.labels[recent.class_id] = recent.label
            self.head.set_recent(recent.class_id, recent.total, recent.count)

    def count(self, stored: Sequence[StoredSample], features: npt.NDArray[np.float32]) -> None:
        """Count samples that were just stored, with z (B, D), in the means and the discriminant.

        They are folded into its sums if due. Means that cannot be read are loaded by the next `refresh`.
        """
        try:
            self.update_means(self.store.classes.recent({sample.class_id for sample in stored}))
        except SiestaError:
            self._version = None
        if self.rejections:
            self.read_rejections()  # those of images that are learned under the label after all are gone
        if self.discriminant is None:
            return
        counted = [row for row, sample in enumerate(stored) if not sample.held]
        if counted:
            self.discriminant.add(np.array([stored[row].class_id for row in counted]), features[counted])
            self._newest_counted = stored[counted[-1]].id
        self.fold()

    def fold(self) -> None:
        """Fold the samples that were counted since the sums were made into them, while there are enough of them.

        The covariance is renewed by that, at the same sample whatever the transactions were. If the disk refuses it,
        the samples stay as they are stored, and the next one tries again.
        """
        try:
            self._fold()
        except SiestaError:
            self._version = None  # the next `refresh` loads what is stored

    def _fold(self) -> None:
        while self.discriminant is not None and self.discriminant.added() >= (size := fold_size(self.discriminant)):
            folded = self.discriminant.folded(size)
            with self.store.session.transaction():
                current = self.store.generations.active(), self.store.statistics.number()
                if current != (self.generation, self._statistics_number):
                    return  # a sleep in another process has just ended
                number = self.store.statistics.fold(folded.base.arrays(), size)
            self._statistics_number = number
            self.discriminant = folded

    def _use(self, snapshot: Snapshot) -> None:
        self._hashes = snapshot.generation.hashes
        self.generation = snapshot.generation.number
        self.confidence = Confidence.from_state((snapshot.generation.report or {}).get("confidence"))
        self.head = Head.from_state(snapshot.weights["head"])
        self.labels = {record.id: record.label for record in snapshot.classes}
        self.update_means(snapshot.recent)
        self._use_statistics(snapshot.statistics)
        self._use_rejections(snapshot.rejected)
        if not self.labels.keys() >= set(self.head.class_ids.tolist()):
            raise Damaged(f"{self.store.path} has lost names of classes: `siesta repair` keeps the rest")

    def _use_statistics(self, stored: StoredStatistics) -> None:
        """Use statistics that were read, or what has changed in those in use."""
        self._statistics_number = stored.number
        if stored.number is None:
            if self.store.settings.get("head") == DISCRIMINANT:  # one of version 0.1 has none before its next sleep
                raise Damaged(f"the statistics of {self.store.path} are lost: `siesta repair` computes them again")
            self.discriminant = None
            return
        if stored.arrays is not None:
            self.discriminant = _make_discriminant(stored.arrays, self.head)
            self._newest_counted = 0
        if self.discriminant is not None and len(stored.since.ids):
            self.discriminant.add(stored.since.classes, stored.since.features)
            self._newest_counted = int(stored.since.ids[-1])

    def _use_rejections(self, classes: Mapping[int, int]) -> None:
        self.rejections.use(classes, (self.generation, self._codec_hash))

    def read_rejections(self) -> None:
        """Use the rejections that are stored; if they cannot be read, the next `refresh` loads them."""
        try:
            self._use_rejections(self.store.rejections.classes())
        except SiestaError:
            self._version = None

    def read(self, given: InputLike) -> npt.NDArray[Any]:
        """Return an image, or a vector, as the pipeline takes it."""
        return self.pipeline.input.read(given)

    def encode(self, inputs: Iterable[InputLike]) -> Codes:
        """Return the codes (B, code_bytes) of images or vectors."""
        batches = [self.pipeline.encode([self.read(each) for each in batch]) for batch in batched(inputs, BATCH_SIZE)]
        return np.concatenate([np.zeros((0, self.store.code_bytes), np.uint8), *batches])

    def validate_codes(self, codes: Codes) -> None:
        """Raise `BadInput` unless `codes` is a uint8 array (B, code_bytes)."""
        expected = f"(samples, {self.store.code_bytes}) of uint8"
        remedy = "make them with `encode`"
        if not isinstance(codes, np.ndarray):
            raise BadInput(f"codes of this learner are {expected}, not {type(codes).__name__}: {remedy}")
        if codes.ndim != 2 or codes.shape[1] != self.store.code_bytes or codes.dtype != np.uint8:
            raise BadInput(f"codes of this learner are {expected}, not {codes.shape} of {codes.dtype}: {remedy}")

    @contextmanager
    def sleeping(self, timeout: float = 0.0) -> Iterator[Snapshot]:
        """Hold the sleep lock, and refuse to learn, while the weights are trained; load the active ones afterwards.

        Args:
            timeout: Seconds to wait for the lock.
        """
        with self.store.sleeping(timeout):
            snapshot = self.load()
            self._asleep = True
            try:
                yield snapshot
            finally:
                self._asleep = False
                self.load_if_possible()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the sleep lock while stored samples or weights are changed; load the result afterwards."""
        self.require_awake()
        with self.store.sleeping(), self.store.session.errors():
            self.refresh()
            try:
                yield
            finally:
                self.load_if_possible()

    def load_if_possible(self) -> None:
        """Load the result of a change; what cannot be read now is read by the next `refresh`."""
        with suppress(SiestaError), self.store.session.errors():
            self.load()

    def require_awake(self) -> None:
        """Raise `BadInput` during a sleep of this object."""
        if self._asleep:
            raise BadInput("the learner is asleep: wait until `sleep` has returned")
