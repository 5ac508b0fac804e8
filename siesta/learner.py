"""Siesta: learns each labelled picture at once, answers at any time, consolidates while it sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from siesta.augment import make_augmentation
from siesta.backbones import DEFAULT_BACKBONE, DEFAULT_SPACE, PUBLISHED
from siesta.budget import Budget
from siesta.catch_up import CatchUp
from siesta.codecs import DEFAULT_CODEC, OPQ
from siesta.confidence import UNKNOWN, Confidence
from siesta.consolidation import Consolidation
from siesta.contracts import Augmentation, Codes, Ids, OnProgress, Policy, Prediction, Progress, SleepReport
from siesta.engines import choose_engine
from siesta.errors import BadInput, Damaged, SiestaError
from siesta.head import Head
from siesta.images import ImageLike, Pixels, read_image
from siesta.jobs import SleepJob, begin_sleep, reported
from siesta.making import make_store
from siesta.pipeline import Pipeline, groups, torch_device
from siesta.policies import DEFAULT_POLICY, make_policy
from siesta.sleep import SleepSettings
from siesta.store import (
    OVERHEAD_BYTES,
    Edit,
    Generation,
    NewSample,
    Outdated,
    Recent,
    Snapshot,
    Store,
    clean_label,
)

__all__ = ["DEFAULT_IMAGE_SIZE", "IN_MEMORY", "Siesta"]

IN_MEMORY = ":memory:"
DEFAULT_IMAGE_SIZE = 224
_AT_ONCE = 32
_MEASURED_EVERY = 8  # samples taught: on one of them the codec's error is measured
_DRIFTED = 1.25  # times the codec's error on the pictures that it was fitted on
_PATIENCE = 30.0  # seconds that a sleep waits for somebody who changes something just now
_MOST_NICE = 19
_IN_BACKGROUND = {
    *("updates", "seconds", "minutes", "until"),
    *("policy", "augment", "batch_size", "rate", "tolerance", "seed"),
}


class Siesta:
    """A classifier that learns as it goes and consolidates while it sleeps, in a folder of its own.

    Attributes:
        pipeline: The way from a picture to its codes and its z, with the weights in use.

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
        """Wakes up what is in a store; use `create` or `open`."""
        self._store = store
        self._asleep, self._unmeasured = False, 0
        self._version = store.version()
        snapshot = store.snapshot()
        self.pipeline = Pipeline.of(store, device, engine, snapshot.weights["top"])
        self._take_over(snapshot)

    @property
    def store(self) -> Store:
        """All of it that lasts."""
        return self._store

    @property
    def generation(self) -> int:
        """Number of the weights that it answered with last."""
        return self._generation

    def _load_weights(self) -> Snapshot:
        """Takes over the generation that the store points at, and what was taught since."""
        self._version = self._store.version()  # what comes after this look is noticed by the next one
        snapshot = self._store.snapshot()
        self.pipeline.load_top(snapshot.weights["top"])
        self._take_over(snapshot)
        return snapshot

    def _refresh(self) -> None:
        """Takes over what other processes did since the last look: taught something, or slept."""
        version = self._store.version()
        if version == self._version:
            return
        seen = self._store.moment()
        if self._store.codec_hash() != self._codec_hash:
            self.pipeline.load_codec(self.settings["codec"], self._store.constant("codec"))
            self._load_weights()
        elif (seen.generation.number, seen.generation.hashes) != (self._generation, self._hashes):
            self._load_weights()
        elif self._head.recent_ids() - {recent.class_id for recent in seen.recent}:
            self._load_weights()  # what was taught since the last sleep is less now: some of it was forgotten
        else:
            self._version = version
            self._labels = {record.id: record.label for record in seen.classes}
            self._count_in(seen.recent)

    def _take_over(self, snapshot: Snapshot) -> None:
        self._hashes, self._codec_hash = snapshot.generation.hashes, self._store.codec_hash()
        self._confidence = Confidence.from_state((snapshot.generation.report or {}).get("confidence"))
        self._generation = snapshot.generation.number
        self._head = Head.from_state(snapshot.weights["head"])
        self._labels = {record.id: record.label for record in snapshot.classes}
        self._count_in(snapshot.recent)
        if not self._labels.keys() >= set(self._head.class_ids.tolist()):
            raise Damaged(f"{self._store.path} has lost names of classes: `siesta repair` keeps the rest")

    # -- making, opening, closing ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        memory: str | int = "64MB",
        backbone: str = DEFAULT_BACKBONE,
        cut: int | None = None,
        codec: str = DEFAULT_CODEC,
        weights: str | Path = PUBLISHED,
        image_size: int = DEFAULT_IMAGE_SIZE,
        base: str | Path | Iterable[ImageLike] | None = None,
        space: str = DEFAULT_SPACE,
        hold_out: bool = True,
        seed: int = 0,
        device: str = "cpu",
        engine: str | None = None,
    ) -> Siesta:
        """Makes an empty learner.

        Args:
            path: The folder to make, or ":memory:" for one that lives in RAM.
            memory: Room for stored samples: bytes, as a number or like "64MB", or like "500 samples".
            backbone: A name from `BACKBONES`.
            cut: Layers below the cut; the backbone's default when None.
            codec: How samples are stored: "opq", or "raw" for the pictures themselves, with no layer below the cut.
            weights: A file of them, "random", or "published" for those that come with the backbone.
            image_size: Side of the square that pictures are brought to.
            base: Pictures to fit the codec on: a folder, with or without labels, of which at most 1,000 are read, or
                pictures themselves, of which all are; without them the codec that comes with the package is used.
            space: Where class means live: "centred" (features seen from their mean over base pictures), "plain" (as
                they are: the paper's variant), or "linear_centred" and "linear", the same before the last activation.
            hold_out: Whether a few samples of every class with 20 or more, five at most, are never rehearsed: sleep
                is judged by them.
            seed: Starts every random stream of this learner.
            device: Where torch computes.
            engine: What runs the network awake: "onnx" or "torch"; when None, onnx on a CPU and torch elsewhere.
        """
        store = make_store(
            None if str(path) == IN_MEMORY else Path(path),
            memory=memory,
            backbone=backbone,
            cut=cut,
            codec=codec,
            weights=weights,
            image_size=image_size,
            base=base,
            space=space,
            hold_out=hold_out,
            seed=seed,
            device=torch_device(device),
            engine=choose_engine(engine, torch_device(device)),
        )
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
        """Opens a learner on disk. What other processes do with it meanwhile, it takes over by itself.

        Args:
            path: Its folder.
            read_only: To ask, not to teach; hinders nobody.
            to_sleep: To sleep, not to teach; another process may go on teaching it.
            durability: What survives when `learn_one` has returned: "process", the death of this process, or
                "power", that of the machine too, for which every commit waits for the disk.
            device: Where torch computes.
            engine: What runs the network awake, as in `create`.
        """
        choose_engine(engine, torch_device(device))  # before a writer in this process is closed for the new one
        store = Store.open(Path(path), "read" if read_only else "sleep" if to_sleep else "teach", durability)
        try:
            return cls(store, device, engine)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Lets go of the files."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What it was made with; plain values that never change."""
        return MappingProxyType(self._store.settings)

    # -- awake ----------------------------------------------------------------------------------------------------

    def read(self, image: ImageLike) -> Pixels:
        """The picture as this learner sees it, (S, S, 3) bytes; every method takes such an array as it is."""
        return read_image(image, self.pipeline.image_size)

    def learn_one(self, image: ImageLike, label: str) -> int:
        """Learns one labelled picture at once; returns the id of the stored sample."""
        return self.learn_many([image], [label])[0]

    def learn_many(
        self, images: Iterable[ImageLike], labels: Iterable[str], keys: Iterable[int | None] | None = None
    ) -> list[int]:
        """Learns labelled pictures in order, 32 at a time; at an error the 32 it is in are left out, all before stay.

        Args:
            images: Paths, PIL images or arrays; may be a generator.
            labels: One for each image.
            keys: A 64-bit number for each image under which `known_keys` will find it.

        Returns:
            Ids of the stored samples.

        Raises:
            SiestaError: Its `safe` says how many are stored.
        """
        self._check_awake()
        ids: list[int] = []
        try:
            for some in self._learning(images, labels, keys):
                ids += some
        except SiestaError as error:
            error.safe = len(ids)
            raise
        return ids

    def _learning(
        self, images: Iterable[ImageLike], labels: Iterable[str], keys: Iterable[int | None] | None
    ) -> Iterator[list[int]]:
        """Ids of the samples of each group, once they are stored."""
        for group in groups(_lessons(images, labels, keys), _AT_ONCE):
            pixels, error = [self.read(image) for image, _, _ in group], None
            self._unmeasured += len(pixels)
            if self._unmeasured >= _MEASURED_EVERY:
                codes, error = self.pipeline.encode_measured(pixels)
                self._unmeasured = 0
            else:
                codes = self.pipeline.encode(pixels)
            yield self._learn(codes, [label for _, label, _ in group], [key for _, _, key in group], error)

    def encode(self, images: Iterable[ImageLike]) -> Codes:
        """What would be stored of pictures: codes (B, code_bytes), for `learn_encoded` and `predict_encoded`."""
        parts = [self.pipeline.encode([self.read(image) for image in group]) for group in groups(images, _AT_ONCE)]
        return np.concatenate([np.zeros((0, self._store.code_bytes), np.uint8), *parts])

    def learn_encoded(self, codes: Codes, labels: Sequence[str], keys: Sequence[int | None] | None = None) -> list[int]:
        """`learn_many` for pictures that were encoded before.

        Args:
            codes: What `encode` made of them, (B, code_bytes).
            labels: One for each.
            keys: A 64-bit number for each under which `known_keys` will find it.

        Returns:
            Ids of the stored samples.
        """
        self._check_awake()
        self._check_codes(codes)
        keys = [None] * len(codes) if keys is None else keys
        if not len(codes) == len(labels) == len(keys):
            raise BadInput(f"each sample has one label and one key: {len(codes)}, {len(labels)} and {len(keys)} differ")
        ids: list[int] = []
        for start in range(0, len(codes), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            ids += self._learn(codes[some], labels[some], keys[some])
        return ids

    def _learn(
        self, codes: Codes, labels: Sequence[str], keys: Sequence[int | None], error: float | None = None
    ) -> list[int]:
        """Stores samples in one transaction and moves their classes' means."""
        self._refresh()
        samples = list(map(NewSample, labels, map(bytes, codes), self.pipeline.features(codes), keys))
        try:
            stored = self._store.add(samples, self._generation, error)
            self._count_in(self._store.recent({sample.class_id for sample in stored}))
        except Outdated:  # a sleep has ended just now, in another process
            return self._learn(codes, labels, keys, error)
        except BaseException:
            self._load_weights()  # whatever was interrupted, go on from what is stored
            raise
        return [sample.id for sample in stored]

    def _check_awake(self) -> None:
        if self._asleep:
            raise BadInput("it is asleep: teach it when it has woken up")

    def _check_codes(self, codes: Codes) -> None:
        shape = (len(codes), self._store.code_bytes) if isinstance(codes, np.ndarray) and codes.ndim else None
        if shape is None or codes.shape != shape or codes.dtype != np.uint8:
            form = f"{codes.shape} of {codes.dtype}" if isinstance(codes, np.ndarray) else type(codes).__name__
            raise BadInput(f"codes of this learner are (samples, {self._store.code_bytes}) of uint8, not {form}")

    def _count_in(self, taught: Iterable[Recent]) -> None:
        """Brings the head's running means of some classes up to what the store has."""
        for recent in taught:
            self._labels[recent.class_id] = recent.label
            self._head.set_recent(recent.class_id, torch.from_numpy(recent.total.copy()), recent.count)

    def known_keys(self, keys: Iterable[int]) -> dict[int, int]:
        """Those of the keys under which something was learned already, with the id of its sample."""
        return self._store.samples.known_keys(keys)

    def predict_one(
        self, image: ImageLike, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> Prediction:
        """The best label for a picture, with its probability and the `top` best; see `predict_encoded`."""
        return self.predict_many([image], top, threshold=threshold, error_rate=error_rate)[0]

    def predict_many(
        self,
        images: Iterable[ImageLike],
        top: int = 5,
        *,
        threshold: float | None = None,
        error_rate: float | None = None,
    ) -> list[Prediction]:
        """The best labels for each picture, in order; see `predict_encoded`."""
        answers: list[Prediction] = []
        for group in groups(images, _AT_ONCE):
            self._refresh()  # before, and not after, pictures become codes
            answers += self._answers(self.encode(group), top, threshold, error_rate)
        return answers

    def predict_encoded(
        self, codes: Codes, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> list[Prediction]:
        """`predict_many` for pictures that were encoded before.

        Args:
            codes: What `encode` made of them, (B, code_bytes).
            top: How many labels to give for each.
            threshold: Below this score the answer is "unknown".
            error_rate: The same, at the score above which at most such a share of held-out samples is answered wrongly.
        """
        self._refresh()
        return self._answers(codes, top, threshold, error_rate)

    def _answers(self, codes: Codes, top: int, threshold: float | None, error_rate: float | None) -> list[Prediction]:
        self._check_question(top)
        least = self.threshold(error_rate) if error_rate is not None else threshold or 0.0
        if not 0 <= least <= 1:
            raise BadInput(f"a threshold lies from 0 to 1, not {threshold}")
        self._check_codes(codes)
        answers: list[Prediction] = []
        names = [self._labels[class_id] for class_id in self._head.class_ids.tolist()]
        for start in range(0, len(codes), _AT_ONCE):
            with self.pipeline.quietly():
                features = torch.from_numpy(self.pipeline.features(codes[start : start + _AT_ONCE]))
                scores, rows = self._head.probabilities(features, self._confidence.temperature).topk(
                    min(top, len(names)), dim=1
                )
            for some_scores, some_rows in zip(scores.tolist(), rows.tolist(), strict=True):
                best = [(names[row], score) for row, score in zip(some_rows, some_scores, strict=True)]
                known = best[0][1] >= least
                answers.append(Prediction(best[0][0] if known else UNKNOWN, best[0][1], best, known))
        return answers

    def threshold(self, error_rate: float) -> float:
        """The score from which on at most such a share of held-out samples was wrong after the last sleep."""
        return self._confidence.threshold(error_rate)

    def _check_question(self, top: int) -> None:
        if not len(self._head):
            raise BadInput("this learner was not taught anything yet: teach it with learn_one or `siesta learn`")
        if top < 1:
            raise BadInput(f"ask for at least one answer, not {top}")

    # -- asleep ---------------------------------------------------------------------------------------------------

    def sleep(
        self,
        *,
        updates: int | None = None,
        seconds: float | None = None,
        minutes: float | None = None,
        until: datetime | str | None = None,
        policy: str | Policy = DEFAULT_POLICY,
        augment: str | Augmentation | None = None,
        batch_size: int = 64,
        rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-5,
        layer_decay: float | None = None,
        mean_share: float = 0.5,
        schedule: str = "one_cycle",
        optimizer: str = "sgd",
        tolerance: float = 0.05,
        seed: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> SleepReport:
        """Consolidates: rehearses stored samples within exactly one budget, then swaps the new weights in.

        Ctrl-C, or `on_progress` returning True, wakes it early; what was consolidated until then is kept. With an
        update budget the same seed gives the same weights.

        Args:
            updates: Budget in backward passes of single samples.
            seconds: Budget in seconds.
            minutes: Budget in minutes.
            until: Budget as a moment: a datetime, or "HH:MM".
            policy: Which samples are rehearsed: a name from `POLICIES`, or an object of your own.
            augment: How pairs of them are mixed: a name from `AUGMENTATIONS`, or a function of your own.
            batch_size: Samples a step.
            rate: The schedule's maximum, of the last layer; the backbone's own, scaled with the batch, when None.
            momentum: Of SGD; of AdamW its first beta.
            weight_decay: Of the optimizer.
            layer_decay: Factor on the rate for each layer below the last; the backbone's own when None.
            mean_share: What class vectors are afterwards, see `SleepSettings`; 0 is the paper's variant.
            schedule: How the rate runs over the budget: a name from `SCHEDULES`.
            optimizer: "sgd" or "adamw".
            tolerance: Where a learner holds samples out, how much smaller the share of right answers to them may
                become beyond chance; by more, and the new weights are kept but not used.
            seed: Of everything random in this sleep; made of the learner's seed and its sleeps so far when None.
            on_progress: Called after each batch.
        """
        start = time.monotonic()
        budget = Budget.of(updates, seconds, minutes, until)
        if not -1 <= tolerance <= 1:
            raise BadInput(f"a tolerance lies from -1 to 1, not {tolerance}")
        chosen, mix = make_policy(policy), make_augmentation(augment)
        settings = SleepSettings.suited(
            self.pipeline.backbone.defaults,
            batch_size=batch_size,
            rate=rate,
            layer_decay=layer_decay,
            momentum=momentum,
            weight_decay=weight_decay,
            mean_share=mean_share,
            schedule=schedule,
            optimizer=optimizer,
            seed=_mixed(self._store.settings["seed"], self._store.generations.newest()) if seed is None else seed,
        )
        with self._reported(on_progress) as (notice, done):
            with self._store.sleeping(_PATIENCE):
                snapshot = self._load_weights()
                self._asleep = True
                try:
                    report = Consolidation(
                        self._store,
                        self.pipeline,
                        self._head,
                        snapshot.newest,
                        budget,
                        settings,
                        chosen,
                        mix,
                        {"policy": _name(policy), "augment": _name(augment)},
                        tolerance,
                        notice,
                        start,
                    ).run()
                finally:
                    self._asleep = False
                    self._load_weights()
            done(report)  # from now on it may be changed
        return report

    @contextmanager
    def _reported(self, on_progress: OnProgress | None) -> Iterator[tuple[OnProgress, Callable[[SleepReport], None]]]:
        """What a sleep tells of its progress and of its end, to its caller and to other processes."""
        if self._store.path is None:
            yield on_progress or (lambda _: None), lambda _: None
            return
        with reported(self._store.path) as reporter, reporter.one_sleep():

            def notice(progress: Progress) -> bool:
                wanted = on_progress is not None and bool(on_progress(progress))
                return reporter.on_progress(progress) or wanted

            yield notice, lambda report: reporter.say("done", report.words(), report=report.as_dict())

    def sleep_async(self, *, threads: int = 1, nice: int = 10, **options: Any) -> SleepJob:
        """`sleep` in a process of its own, while this one goes on teaching and answering with the weights it has.

        It gives way to other processes, outlives this one, and its new weights are taken over by themselves.

        Args:
            threads: How many it computes with.
            nice: How much it gives way, 0 to 19.
            **options: Those of `sleep` that are text or numbers: a budget, policy, augment, batch_size, rate,
                tolerance, seed.

        Returns:
            What follows, pauses and ends it.
        """
        if self._store.path is None:
            raise BadInput("a learner in memory sleeps in its own process: use sleep")
        unknown = set(options) - _IN_BACKGROUND
        if unknown or not all(value is None or isinstance(value, str | int | float) for value in options.values()):
            raise BadInput(f"a sleep in the background takes text and numbers: {', '.join(sorted(_IN_BACKGROUND))}")
        Budget.of(**{name: options.get(name) for name in ("updates", "seconds", "minutes", "until")})
        if not 0 <= nice <= _MOST_NICE:
            raise BadInput(f"a process gives way by 0 to {_MOST_NICE}, not {nice}")
        named = {"lr" if name == "rate" else name: value for name, value in options.items()}
        return begin_sleep(self._store.path, {**named, "nice": nice}, threads)

    # -- changing one's mind --------------------------------------------------------------------------------------

    def rename(self, label: str, new: str) -> None:
        """Gives a class another name."""
        with self._changing():
            self._store.changes.rename(label, new)

    def merge(self, label: str, into: str) -> None:
        """Makes one class of two: what was taught as `label` was `into` all along."""
        gone, stays = (self._store.class_named(some).id for some in (label, into))
        with self._changing():
            self._store.changes.merge(label, into, _heads(lambda head: head.merged(gone, stays)))

    def forget(self, label: str) -> None:
        """Forgets a class: its samples, its means, its place in every generation that is kept.

        No file of the learner has their codes any more. What they taught the upper layers, these keep.
        """
        gone = self._store.class_named(label).id
        with self._changing():
            self._store.changes.forget_class(label, _heads(lambda head: head.without(gone)))

    def forget_sample(self, sample_id: int) -> None:
        """Forgets one sample, by the id that `learn_one` returned."""
        with self._changing():
            codes, heads = self._sample(sample_id)
            self._store.changes.forget_sample(sample_id, self.pipeline.features(codes)[0], heads)

    def correct(self, sample_id: int, label: str) -> int:
        """Teaches a sample anew under another label, in the place of the old one; returns its new id."""
        with self._changing():
            codes, heads = self._sample(sample_id)
            if self._labels[self._store.samples.class_of(sample_id)] == clean_label(label):
                raise BadInput(f"sample {sample_id} is '{label}' already: name what it really is")
            key = self._store.samples.key_of(sample_id)  # so that its file is known, and not taught again as before
            sample = NewSample(label, codes.tobytes(), self.pipeline.features(codes)[0], key)
            return self._store.changes.correct(sample_id, sample, heads)

    def _sample(self, sample_id: int) -> tuple[Codes, Edit]:
        """Codes of a stored sample, and what becomes of heads that have it inside."""
        class_id = self._store.samples.class_of(sample_id)
        _, codes = self._store.get(np.array([sample_id], dtype=np.int64))

        def without_it(generation: Generation, state: dict[str, Tensor]) -> dict[str, Tensor]:
            head = Head.from_state(state)
            return (head.with_one_less(class_id) if sample_id <= generation.since else head).state()

        return codes, without_it

    def renew_codec(self, codec: OPQ, error: float, pictures: Mapping[int, ImageLike]) -> int:
        """Stores all samples anew with another codec; see `siesta.refit`, which fits one.

        Args:
            codec: For latents of this learner's shape.
            error: Its relative error on what it was fitted on.
            pictures: Some samples' own pictures, by id: their codes are made of these. Those of others are made of what
                the old codec kept of them, and lose a second time.

        Returns:
            How many samples were made of their pictures.
        """
        ids = self._store.samples.ids()

        def codes() -> Iterator[tuple[Ids, Codes]]:
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                latents = self.pipeline.decode(self._store.get(some)[1]).clone()
                for row, sample_id in enumerate(some.tolist()):
                    if sample_id in pictures:
                        latents[row] = self.pipeline.latents([self.read(pictures[sample_id])])[0]
                yield some, codec.encode(latents).cpu().numpy()

        with self._changing():
            what = {"what": "refit", "samples": len(ids), "from_pictures": len(pictures)}
            self._store.renew_codec(codec.state(), error, codes(), what)
            self.pipeline.load_codec(self.settings["codec"], codec.state())
            self._store.use_generation(self._generation, CatchUp(self.pipeline.features, self._slept_head()))
        return sum(sample_id in pictures for sample_id in ids.tolist())

    def _slept_head(self) -> Head:
        """The head as the last sleep left it."""
        return Head.from_state(self._store.snapshot().weights["head"])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Nobody sleeps meanwhile; afterwards it knows what the store does."""
        self._check_awake()
        with self._store.sleeping():
            self._refresh()
            try:
                yield
            finally:
                self._load_weights()

    def generations(self) -> list[Generation]:
        """Weights that are kept, oldest first, with what is known of the sleeps that made them."""
        return self._store.generations.all()

    def roll_back(self, number: int) -> None:
        """Answers with the weights of an older generation, or a newer one; what was taught since is counted in."""
        self._check_awake()
        with self._store.sleeping():
            weights = self._store.generations.read(self._store.generations.get(number))
            self.pipeline.load_top(weights["top"])
            try:
                self._store.use_generation(number, CatchUp(self.pipeline.features, Head.from_state(weights["head"])))
            finally:
                self._load_weights()

    def _drift(self) -> dict[str, Any]:
        """How the codec does on what is taught, against the pictures it was fitted on."""
        count, error = self._store.drift()
        fit: float = self._store.settings["codec_error"]
        return {"error_lately": error if count else None, "drifted": count >= 20 and error > _DRIFTED * fit > 0}

    def _old_space(self) -> str:
        """The space of a learner that was made before there was a choice of four."""
        return "centred" if self.pipeline.backbone.top[-1].state_dict()["centre"].any() else "plain"

    # -- looking inside -------------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """What it knows, what it costs, what it is made of; plain values, for JSON."""
        store, settings = self._store, self._store.settings
        return {
            "classes": [
                {"label": record.label, "taught": record.taught, "stored": record.stored} for record in store.classes()
            ],
            "samples": {"stored": len(store), "capacity": store.capacity},
            "bytes": {
                "used": store.bytes_used,
                "allowed": settings["memory_bytes"],
                "a_sample": store.code_bytes + OVERHEAD_BYTES,
                "thumbnails": store.thumbnails.bytes(),
                "on_disk": store.bytes_on_disk(),
            },
            "backbone": {
                "name": settings["backbone"],
                "cut": settings["cut"],
                "weights": settings["weights"],
                "image_size": settings["image_size"],
                "space": settings.get("space") or self._old_space(),
            },
            "codec": {"name": settings["codec"], "relative_error": settings["codec_error"], **self._drift()},
            "sleeps": store.generations.reports(),
            "changes": store.changes.audit(),
        }


def _lessons(
    images: Iterable[ImageLike], labels: Iterable[str], keys: Iterable[int | None] | None
) -> Iterator[tuple[ImageLike, str, int | None]]:
    """Each picture with its label and key, as long as there is one of each."""
    nothing: Any = object()
    for image, label, key in zip_longest(images, labels, () if keys is None else keys, fillvalue=nothing):
        if image is nothing or label is nothing or (key is nothing and keys is not None):
            raise BadInput("each picture has one label, and one key if any: there are more of one than of another")
        yield image, label, None if key is nothing else key


def _mixed(seed: int, step: int) -> int:
    """A seed for one step of a stream that no other seed's steps share."""
    return int(np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _name(part: object) -> str | None:
    """What a report calls a policy or an augmentation."""
    if part is None or isinstance(part, str):
        return part
    return str(getattr(part, "__name__", type(part).__name__))


def _heads(change: Callable[[Head], Head]) -> Edit:
    """The same change to the head of any generation."""
    return lambda _, state: change(Head.from_state(state)).state()
