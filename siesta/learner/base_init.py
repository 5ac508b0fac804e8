"""Base initialisation: steps two and three of the paper's appendix on implementation details.

A codec is fitted on the latent vectors of all base images; the images are stored; then top and head are trained on
what the codec reconstructs of them. Step one, self-supervised training of the whole network, has made its weights; see
`siesta.pretrain`.

Every step can be interrupted or killed, and the same call continues. A learner is created completely or not at all,
images that are stored are not stored again, and a training continues from its last checkpoint and ends with the same
weights. Until it is complete, the learner uses the weights that it was created with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack

from siesta.contracts import OnProgress, Progress
from siesta.data import picture_files
from siesta.errors import BadInput
from siesta.head.kinds import head_of
from siesta.learner import IN_MEMORY, Siesta
from siesta.learner.create_options import NetworkFields
from siesta.learner.folders import learn_files, valid_labelled_files
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.resume import TrainingCheckpoint
from siesta.store import OVERHEAD_BYTES, parse_bytes

__all__ = [
    "EPOCHS",
    "BaseFields",
    "InitProgress",
    "InitResult",
    "OnInitProgress",
    "initialise",
    "is_trained",
    "train_base",
]

EPOCHS = 50
_SCHEDULE = "steps"  # also the mark of a base training among a learner's sleeps
_CHECKPOINT = "base.training"  # in the learner's folder, while its base training is not complete
_FIXED_SETTINGS = ("backbone", "cut", "codec", "weights", "image_size", "space", "head", "memory", "seed")


class BaseFields(NetworkFields, total=False):
    """Keyword arguments for `Siesta.create`, see `CreateOptions`."""

    device: str
    engine: str | None


@dataclass(frozen=True)
class InitProgress:
    """Progress of a base initialisation.

    Attributes:
        phase: What is being done: fitting the codec, storing images, or training.
        done: Images, or updates of the training.
        total: How many there are.
        training: Progress of the training in its phase.
    """

    phase: Literal["codec", "store", "train"]
    done: int
    total: int
    training: Progress | None = None


OnInitProgress = Callable[[InitProgress], None]


@dataclass(frozen=True)
class InitResult:
    """What a call of `initialise` has done.

    Attributes:
        status: "trained"; "interrupted" when the training was, and the same call continues it; "unlabelled" when only
            the codec was made, because the images have no labels; "known" when everything was done before and nothing
            has changed.
        learned: Number of images stored by this call.
        known: Number of images stored before.
        stored: Number of samples in the store afterwards; fewer than both together where it is full.
        skipped: Why other images were not stored.
        training: Report of the training, if it was completed.
    """

    status: Literal["trained", "interrupted", "unlabelled", "known"]
    learned: int = 0
    known: int = 0
    stored: int = 0
    skipped: tuple[str, ...] = ()
    training: SleepReport | None = None


def initialise(
    path: str | Path,
    folder: str | Path,
    *,
    epochs: int = EPOCHS,
    batch_size: int = 64,
    lr: float | None = None,
    seed: int = 0,
    on_progress: OnInitProgress | None = None,
    **fields: Unpack[BaseFields],
) -> InitResult:
    """Create the learner at `path` from a folder of base images, or continue an interrupted base initialisation.

    Args:
        path: The learner's folder.
        folder: Images as `folder/<label>/*`; if they are directly inside, only the codec is made.
        epochs: Length of the training; an epoch is as many updates as there are samples stored.
        batch_size: Of the training.
        lr: Initial learning rate of the head; None takes the backbone's, scaled with the batch size.
        seed: Of the learner, its codec and its training.
        on_progress: Called after each image and each batch; it may raise KeyboardInterrupt.
        **fields: Keyword arguments for `Siesta.create`.
    """
    _check_training(epochs, batch_size, lr, seed)
    notify = on_progress or (lambda _progress: None)
    labelled, files = _base_files(Path(folder))
    existed = Path(path).exists()
    with _create_or_open(Path(path), [file for file, _ in files], seed, notify, fields) as learner:
        if not labelled:
            return InitResult("known" if existed else "unlabelled")
        checkpoint = TrainingCheckpoint(Path(path) / _CHECKPOINT, {})
        if is_trained(learner):
            checkpoint.remove()  # a kill may have left it behind
            return InitResult("known", stored=learner.info().samples.stored)
        untrained = _store_images(learner, files, notify)

        def training_progress(progress: Progress) -> None:
            notify(InitProgress("train", progress.updates, epochs * untrained.stored, progress))

        try:
            report = train_base(learner, epochs, batch_size, lr, seed, training_progress, checkpoint=checkpoint)
        except KeyboardInterrupt:
            return untrained
        checkpoint.remove()
        return replace(untrained, status="trained", training=report)


def _store_images(learner: Siesta, files: list[tuple[Path, str]], notify: OnInitProgress) -> InitResult:
    """Store labelled images; return the result of a call whose training is interrupted."""
    counts: Counter[str] = Counter()
    skipped = []
    for number, outcome in enumerate(learn_files(learner, files), start=1):
        counts[outcome.status] += 1
        if outcome.status == "unreadable":
            skipped.append(outcome.reason)
        notify(InitProgress("store", number, len(files)))
    stored = learner.info().samples.stored
    return InitResult("interrupted", counts["learned"], counts["known"], stored, tuple(skipped))


def train_base(
    learner: Siesta,
    epochs: int = EPOCHS,
    batch_size: int = 64,
    lr: float | None = None,
    seed: int | None = None,
    on_progress: OnProgress | None = None,
    mean_share: float = 0.5,
    checkpoint: TrainingCheckpoint | None = None,
) -> SleepReport:
    """Train top and head on all stored samples, with mixup and CutMix and a learning rate that falls in steps.

    This is step three. An epoch is as many updates as there are samples; the class vectors stand for every sample
    taught, stored or not.

    Args:
        learner: With base samples in its store.
        epochs: Length of the training.
        batch_size: Samples a step.
        lr: Initial learning rate of the head; None takes the backbone's, scaled with the batch size.
        seed: Of the training; None derives one from the learner's.
        on_progress: Called after each batch.
        mean_share: Weight of the class means in the class vectors, see `SleepSettings`; 0 is the paper's variant.
        checkpoint: Keeps the training, so that after a kill or an interrupt the same call continues it.
    """
    stored = learner.info().samples.stored
    if not stored:
        raise BadInput("no samples are stored: store base samples first")
    options = SleepOptions(
        updates=epochs * stored,
        policy="uniform",
        augment="mixup_cutmix",
        schedule=_SCHEDULE,
        batch_size=batch_size,
        lr=lr,
        mean_share=mean_share,
        crop=1.0,
        tolerance=1.0,  # accept the trained weights whatever their accuracy: the weights before are untrained
        seed=seed,
    )
    return learner.sleep(options, on_progress=on_progress, checkpoint=checkpoint)


def is_trained(learner: Siesta) -> bool:
    """Return whether a base training of the learner was completed."""
    sleeps = learner.info().sleeps
    return any(sleep["settings"].get("schedule") == _SCHEDULE and not sleep["interrupted"] for sleep in sleeps)


def _check_training(epochs: int, batch_size: int, lr: float | None, seed: int) -> None:
    """Raise BadInput for values that would be refused only when the training begins, after hours."""
    if epochs < 1:
        raise BadInput(f"base training takes at least one epoch, not {epochs}")
    SleepOptions(lr=lr, batch_size=batch_size, seed=seed)


def _base_files(folder: Path) -> tuple[bool, list[tuple[Path, str]]]:
    """Return whether the images have labels, and the files with theirs; a mix leaves the unlabelled ones out."""
    images = picture_files(folder)
    if any(file.parent != folder for file in images):
        return True, valid_labelled_files(folder)
    return False, [(file, "") for file in images]


def _create_or_open(path: Path, files: list[Path], seed: int, notify: OnInitProgress, fields: BaseFields) -> Siesta:
    """Return the learner at `path`, with a codec fitted on the files."""
    if str(path) == IN_MEMORY:
        raise BadInput(f"base initialisation continues where it stopped: give a folder, not {IN_MEMORY}")
    if not path.exists():
        return Siesta.create(path, base=_with_progress(files, notify), seed=seed, **fields)
    learner = Siesta.open(path, device=fields.get("device", "cpu"), engine=fields.get("engine"))
    try:
        _check_same_settings(learner.settings, {**fields, "seed": seed}, path)
        _check_same_options(learner.pipeline.codec.options, fields.get("codec_options") or {}, path)
    except BaseException:
        learner.close()
        raise
    return learner


def _with_progress(files: Iterable[Path], notify: OnInitProgress) -> Iterator[Path]:
    known = list(files)
    for number, file in enumerate(known, start=1):
        yield file
        notify(InitProgress("codec", number, len(known)))


def _check_same_settings(settings: Mapping[str, Any], fields: Mapping[str, Any], path: Path) -> None:
    """Raise BadInput for a learner that was made without base images or with other settings."""
    if not settings.get("base"):
        raise BadInput(f"{path} was not made from base images: choose another name")
    made = {
        **settings,
        "head": head_of(settings),
        "memory": settings["memory_bytes"],
        "weights": settings["weights"]["from"],
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if "memory" in given:
        given["memory"] = parse_bytes(given["memory"], settings["code_bytes"] + OVERHEAD_BYTES)
    if "weights" in given:
        given["weights"] = Path(given["weights"]).name
    for name in _FIXED_SETTINGS:
        if name in given and given[name] != made[name]:
            raise BadInput(
                f"{path} was made with {name.replace('_', ' ')} {made[name]}, not {given[name]}: "
                "give the same, or choose another name"
            )


def _check_same_options(options: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> None:
    """Raise BadInput for a learner whose codec was made with other options."""
    for name, value in given.items():
        if options.get(name) != value:
            raise BadInput(
                f"{path} was made with codec option {name} {options.get(name)}, not {value}: "
                "give the same, or choose another name"
            )
