"""`LearnerInfo`: what a learner knows, how large it is, and what it was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from siesta.backbones.cut_network import CutNetwork
from siesta.head.kinds import COSINE, DISCRIMINANT
from siesta.sleep.due import SleepNeed
from siesta.store import OVERHEAD_BYTES, Store

__all__ = [
    "BackboneInfo",
    "ByteInfo",
    "ClassInfo",
    "CodecInfo",
    "LearnerInfo",
    "SampleInfo",
    "WeightsInfo",
    "learner_info",
    "space_of",
]

_MIN_MEASURED = 20  # measurements below which no drift is reported
_DRIFT_RATIO = 1.25  # recent error above this multiple of the error of the fit is a drift


@dataclass(frozen=True)
class ClassInfo:
    """A class: how many samples of it were ever learned, and how many are stored."""

    label: str
    taught: int
    stored: int


@dataclass(frozen=True)
class SampleInfo:
    """The number of stored samples, and how many fit into the byte budget."""

    stored: int
    capacity: int


@dataclass(frozen=True)
class ByteInfo:
    """Sizes in bytes.

    Attributes:
        used: Samples and thumbnails, as the budget counts them.
        allowed: The byte budget.
        a_sample: One sample, as the budget counts it.
        thumbnails: All thumbnails.
        statistics: The statistics of a discriminant head, which are not part of the budget; 0 for another head.
        on_disk: All files of the learner; 0 for a learner in memory.
    """

    used: int
    allowed: int
    a_sample: int
    thumbnails: int
    statistics: int
    on_disk: int


@dataclass(frozen=True)
class WeightsInfo:
    """The name of the file that the initial weights came from, and the entries of that file that were not used."""

    source: str
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class BackboneInfo:
    """The network.

    Attributes:
        name: Its key in `BACKBONES`, or the name of a top over vectors.
        cut: Layers below the cut.
        weights: Its initial weights.
        image_size: Side of the images in pixels; None if the learner takes vectors.
        space: Space of the class means.
        features: Length of the vectors; None if the learner takes images.
    """

    name: str
    cut: int
    weights: WeightsInfo
    image_size: int | None
    space: str
    features: int | None


@dataclass(frozen=True)
class CodecInfo:
    """The codec and how well it fits what was learned recently.

    Attributes:
        name: Its key in `CODECS`.
        relative_error: Relative reconstruction error on the images that the codec was fitted on.
        error_lately: The same on about the last hundred samples that were measured; None if there are none.
        drifted: Whether the recent error is so much larger that the codec should be refitted.
    """

    name: str
    relative_error: float
    error_lately: float | None
    drifted: bool


@dataclass(frozen=True)
class LearnerInfo:
    """Everything that `siesta info` shows.

    Attributes:
        classes: All classes, oldest first.
        samples: Stored samples and capacity.
        bytes: Sizes of samples, thumbnails and files.
        backbone: The network.
        codec: The codec and its reconstruction error.
        head: Name of the head that predicts, "cosine" or "discriminant".
        sleep_need: Whether a sleep is due, and about how long it takes.
        sleeps: The report of every sleep that is recorded, oldest first, as it was stored.
        changes: Renames, merges, removals and corrections, oldest first, as they were stored.
        rejections: The label of each rejection, by its id, oldest first.

    Example:
        >>> from siesta import Siesta
        >>> info = Siesta.create(":memory:", memory="1MB", image_size=32).info()
        >>> info.backbone.name, info.samples.stored, info.as_dict()["bytes"]["allowed"]
        ('efficientnet_lite0', 0, 1000000)
    """

    classes: tuple[ClassInfo, ...]
    samples: SampleInfo
    bytes: ByteInfo
    backbone: BackboneInfo
    codec: CodecInfo
    head: str
    sleep_need: SleepNeed
    sleeps: tuple[Mapping[str, Any], ...]
    changes: tuple[Mapping[str, Any], ...]
    rejections: Mapping[int, str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the keys that `siesta info --json` prints."""
        values = asdict(self)
        weights = self.backbone.weights
        values["backbone"]["weights"] = {"from": weights.source, "ignored": list(weights.ignored)}
        values["sleep_need"] = self.sleep_need.as_dict()
        return values | {name: list(values[name]) for name in ("classes", "sleeps", "changes")}


def learner_info(store: Store, network: CutNetwork) -> LearnerInfo:
    """Collect the facts about a learner from its store and its network."""
    settings = store.settings
    weights = settings["weights"]
    classes = tuple(ClassInfo(record.label, record.taught, record.stored) for record in store.classes.all())
    sleeps = tuple(store.generations.reports())
    new_classes, new_samples = store.classes.since_sleep()
    held_out = store.samples.count_held_out()
    return LearnerInfo(
        classes=classes,
        samples=SampleInfo(len(store), store.budget.capacity),
        bytes=ByteInfo(
            used=store.budget.bytes_used(),
            allowed=settings["memory_bytes"],
            a_sample=store.code_bytes + OVERHEAD_BYTES,
            thumbnails=store.thumbnails.total_bytes(),
            statistics=store.statistics.total_bytes(),
            on_disk=store.bytes_on_disk(),
        ),
        backbone=BackboneInfo(
            name=settings["backbone"],
            cut=settings["cut"],
            weights=WeightsInfo(weights["from"], tuple(weights["ignored"])),
            image_size=settings["image_size"],
            space=space_of(settings, network),
            features=settings.get("features"),
        ),
        codec=_codec_info(store),
        head=COSINE if store.statistics.number() is None else DISCRIMINANT,
        sleep_need=SleepNeed.of(
            new_classes=new_classes,
            new_samples=new_samples,
            learned=sum(each.taught for each in classes),
            rehearsed=len(store) - held_out,
            held_out=held_out,
            last=sleeps[-1] if sleeps else None,
        ),
        sleeps=sleeps,
        changes=tuple(store.edits.audit()),
        rejections=rejected_labels(store),
    )


def rejected_labels(store: Store) -> dict[int, str]:
    """Return the label of each rejection, by its id, oldest first."""
    labels = {record.id: record.label for record in store.classes.all()}
    return {rejection: labels[class_id] for rejection, class_id in store.rejections.classes().items()}


def _codec_info(store: Store) -> CodecInfo:
    fitted_error: float = store.settings["codec_error"]
    count, error = store.drift.read()
    drifted = count >= _MIN_MEASURED and error > _DRIFT_RATIO * fitted_error > 0
    return CodecInfo(store.settings["codec"], fitted_error, error if count else None, drifted)


def space_of(settings: Mapping[str, Any], network: CutNetwork) -> str:
    """Return the space of the class means; learners from before this setting existed have a zero centre or not."""
    if settings.get("space"):
        return str(settings["space"])
    return "centred" if network.top[network.centre].any() else "plain"
