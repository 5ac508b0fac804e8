"""Base initialisation, the paper's steps two and three (its appendix on implementation details).

A codec is fitted on the latent vectors of all base pictures; the pictures are stored; then top and head are trained on
what the codec reconstructs of them. The first step, self-supervised training of the whole network, is in its weights;
`siesta.pretrain` does it.

Every step can be interrupted, and the same call goes on: a learner is made whole or not at all, pictures that are
stored are not stored again, and a training that was woken up early is run again for its full budget, starting from
what it had reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from siesta.contracts import OnProgress, Progress, SleepReport
from siesta.data import picture_files
from siesta.errors import BadInput
from siesta.folders import checked_files, teach
from siesta.learner import IN_MEMORY, Siesta
from siesta.sleep import SleepSettings
from siesta.store import OVERHEAD_BYTES, parse_bytes

__all__ = ["EPOCHS", "Advance", "Initialised", "LearnerOptions", "Notice", "initialise", "is_trained", "train_base"]

EPOCHS = 50
_SCHEDULE = "steps"
_MADE_WITH = ("backbone", "cut", "codec", "weights", "image_size", "space", "memory", "seed")


class LearnerOptions(TypedDict, total=False):
    """How the learner is made, see `Siesta.create`."""

    memory: str | int
    backbone: str
    cut: int | None
    codec: str
    weights: str | Path
    image_size: int
    space: str
    device: str
    engine: str | None


@dataclass(frozen=True)
class Advance:
    """Where it stands: pictures looked at for the codec, pictures stored, or updates of the training."""

    phase: Literal["codec", "store", "train"]
    done: int
    total: int
    asleep: Progress | None = None


Notice = Callable[[Advance], None]


@dataclass(frozen=True)
class Initialised:
    """What a call has done.

    Attributes:
        status: "trained"; "interrupted" when the training was; "unlabelled" when it ended with the codec for want of
            labels; "known" when all was done before and nothing has changed.
        learned: Pictures stored now.
        known: Pictures stored before.
        stored: Samples in memory in the end; fewer than that where it is full.
        skipped: Why others could not be.
        training: What the training did, if there was one.
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
    rate: float | None = None,
    seed: int = 0,
    notice: Notice | None = None,
    **options: Unpack[LearnerOptions],
) -> Initialised:
    """Makes the learner at `path` from a folder of base pictures, or goes on with it.

    Args:
        path: The learner's folder.
        folder: Pictures as `folder/<label>/*`; where they lie directly inside, only the codec is made.
        epochs: Of the training; one is as many updates as there are samples stored.
        batch_size: Of the training.
        rate: Of its last layer, at the start; the backbone's own, scaled with the batch, when None.
        seed: Of the learner, its codec and its training.
        notice: Is told where things stand; a KeyboardInterrupt in it is as good as any.
        **options: See `Siesta.create`.
    """
    _check_training(epochs, batch_size, rate, seed)
    tell = notice or (lambda _advance: None)
    labelled, files = _base_files(Path(folder))
    there_before = Path(path).exists()
    with _made_or_opened(Path(path), [file for file, _ in files], seed, tell, options) as learner:
        if not labelled:
            return Initialised("known" if there_before else "unlabelled")
        if is_trained(learner):
            return Initialised("known", stored=learner.info()["samples"]["stored"])
        counts, skipped = {"learned": 0, "known": 0}, []
        for number, outcome in enumerate(teach(learner, files), start=1):
            if outcome.status == "unreadable":
                skipped.append(outcome.reason)
            else:
                counts[outcome.status] += 1
            tell(Advance("store", number, len(files)))
        stored = learner.info()["samples"]["stored"]

        def show(progress: Progress) -> None:
            tell(Advance("train", progress.updates, epochs * stored, progress))

        report = train_base(learner, epochs, batch_size, rate, seed, show)
        status: Literal["interrupted", "trained"] = "interrupted" if report.interrupted else "trained"
        return Initialised(status, **counts, stored=stored, skipped=tuple(skipped), training=report)


def train_base(
    learner: Siesta,
    epochs: int = EPOCHS,
    batch_size: int = 64,
    rate: float | None = None,
    seed: int | None = None,
    on_progress: OnProgress | None = None,
    mean_share: float = 0.5,
) -> SleepReport:
    """Step three: trains top and head on all that is stored, with mixup and CutMix, the rate falling in steps.

    An epoch is as many updates as there are samples; the class vectors stand for every sample taught, stored or not.
    `mean_share` says what they are afterwards, see `SleepSettings`; 0 is the paper's variant.
    """
    stored = learner.info()["samples"]["stored"]
    if not stored:
        raise BadInput("there are no base samples to train on: store some first")
    return learner.sleep(
        updates=epochs * stored,
        policy="uniform",
        augment="mixup_cutmix",
        schedule=_SCHEDULE,
        batch_size=batch_size,
        rate=rate,
        mean_share=mean_share,
        tolerance=1.0,  # there is nothing to go back to
        seed=seed,
        on_progress=on_progress,
    )


def is_trained(learner: Siesta) -> bool:
    """Whether step three ran to its end once."""
    sleeps = learner.info()["sleeps"]
    return any(sleep["settings"].get("schedule") == _SCHEDULE and not sleep["interrupted"] for sleep in sleeps)


def _check_training(epochs: int, batch_size: int, rate: float | None, seed: int) -> None:
    """Refuses at once what would be refused after hours."""
    if epochs < 1:
        raise BadInput(f"base training takes at least one epoch, not {epochs}")
    SleepSettings(rate=1.0 if rate is None else rate, layer_decay=1.0, dropout=0.0, batch_size=batch_size, seed=seed)


def _base_files(folder: Path) -> tuple[bool, list[tuple[Path, str]]]:
    """Whether the pictures have labels, and all of them with theirs; pictures beside labelled ones are left out."""
    pictures = picture_files(folder)
    if any(file.parent != folder for file in pictures):
        return True, checked_files(folder)
    return False, [(file, "") for file in pictures]


def _made_or_opened(path: Path, files: list[Path], seed: int, tell: Notice, options: LearnerOptions) -> Siesta:
    """The learner at `path`, step two done."""
    if str(path) == IN_MEMORY:
        raise BadInput(f"base initialisation goes on where it stopped: give a folder, not {IN_MEMORY}")
    if not path.exists():
        return Siesta.create(path, base=_watched(files, tell), seed=seed, **options)
    learner = Siesta.open(path, device=options.get("device", "cpu"), engine=options.get("engine"))
    try:
        _check_same(learner.settings, {**options, "seed": seed}, path)
    except BaseException:
        learner.close()
        raise
    return learner


def _watched(files: Iterable[Path], tell: Notice) -> Iterator[Path]:
    every = list(files)
    for number, file in enumerate(every, start=1):
        yield file
        tell(Advance("codec", number, len(every)))


def _check_same(settings: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Refuses a learner that another command has made."""
    if not settings.get("base"):
        raise BadInput(f"{path} was not made from base pictures: choose another name")
    made = {**settings, "memory": settings["memory_bytes"], "weights": settings["weights"]["from"]}
    asked = {name: value for name, value in wanted.items() if value is not None}
    if "memory" in asked:
        asked["memory"] = parse_bytes(asked["memory"], settings["code_bytes"] + OVERHEAD_BYTES)
    if "weights" in asked:
        asked["weights"] = Path(asked["weights"]).name
    for name in _MADE_WITH:
        if name in asked and asked[name] != made[name]:
            raise BadInput(
                f"{path} was made with {name.replace('_', ' ')} {made[name]}, not {asked[name]}: "
                "give the same, or choose another name"
            )
