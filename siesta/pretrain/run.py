"""A run from a folder of pictures to a file of weights."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from siesta.backbones import (
    BACKBONES,
    MAX_IMAGE_SIZE,
    MIN_IMAGE_SIZE,
    PUBLISHED,
    RANDOM,
    checkpoint_bytes,
    make_backbone,
)
from siesta.contracts import Backbone
from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput
from siesta.halfway import check_same
from siesta.pretrain import PRETRAINERS, ranks
from siesta.pretrain.course import Course
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import Questions
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import Loader
from siesta.pretrain.loop import Epoch, Job, OnStep, diverged, train
from siesta.pretrain.options import checked_options
from siesta.pretrain.pictures import Copies, Notice, cache_folder, copied
from siesta.pretrain.watch import collapse
from siesta.provenance import provenance
from siesta.store.files import Lock, disk_errors, replace_file, sha256

__all__ = ["EPOCHS", "Pretrained", "Settings", "pretrain"]

EPOCHS = 2000
_BOUNDS = {
    "image_size": (MIN_IMAGE_SIZE, MAX_IMAGE_SIZE),
    "epochs": (1, 10**9),
    "batch_size": (2, 65_536),
    "seed": (0, 2**63 - 1),
}
_MOST_WORKERS = 256


@dataclass(frozen=True)
class Settings:
    """What a run is; the paper's values unless something else is said.

    Attributes:
        method: A key of `PRETRAINERS`.
        backbone: A key of `BACKBONES`.
        weights: What it starts from, see `make_backbone`.
        image_size: Side of the largest crops.
        epochs: Passes over all pictures.
        seconds: How long to train, in their place; such a run cannot be repeated exactly.
        batch_size: Pictures a step, over all ranks.
        rate: The highest; the method's own, scaled with the batch, when None.
        seed: Of the method's own weights, orders and crops.
        options: Of the method, by name.
    """

    method: str
    backbone: str = "mobilenet_v3_large"
    weights: str = RANDOM
    image_size: int = 224
    epochs: int | None = None
    seconds: float | None = None
    batch_size: int = 64
    rate: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in PRETRAINERS:
            raise BadInput(f"there is no method '{self.method}': choose one of {', '.join(PRETRAINERS)}")
        if self.epochs is not None and self.seconds is not None:
            raise BadInput("say how long to train by epochs or by seconds, not by both")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise BadInput(f"{name.replace('_', ' ')} lies in {low}..{high}, not {value}")
        for name in ("seconds", "rate"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise BadInput(f"{name} must be above zero, not {value}")
        checked_options(self.method, PRETRAINERS[self.method], self.options)

    @property
    def passes(self) -> int | None:
        """Epochs to train; None for a run by time."""
        return (self.epochs or EPOCHS) if self.seconds is None else None

    @property
    def highest_rate(self) -> float:
        """What is asked for, or the method's own for this batch."""
        recipe = PRETRAINERS[self.method].recipe
        return recipe.rate * self.batch_size / recipe.batch if self.rate is None else self.rate


@dataclass(frozen=True)
class Pretrained:
    """What a call has done.

    Attributes:
        status: "trained"; "interrupted" when it can go on; "known" when all was done before and nothing has changed.
        pictures: Looked at in all, repeats included.
        epochs: Passes over the folder.
        seconds: Spent in steps.
        history: Epoch by epoch, the network before its first step included.
        warning: What looks like collapse at the end, if anything does.
        skipped: Why some pictures could not be used.
    """

    status: Literal["trained", "interrupted", "known"]
    pictures: int
    epochs: float
    seconds: float
    history: tuple[Epoch, ...]
    warning: str | None
    skipped: tuple[str, ...] = ()


def pretrain(
    settings: Settings,
    data: str | Path,
    out: str | Path,
    *,
    labelled: str | Path | None = None,
    knn_every: int = 1,
    cache: str | Path | None = None,
    workers: int = 1,
    on_copy: Notice | None = None,
    on_step: OnStep | None = None,
) -> Pretrained:
    """Trains a network on a folder of pictures and writes its weights; stopped before, the same call goes on.

    What it did is in `out.json`; while it is not done, `out.part` has all of it.

    Args:
        settings: What to train, and how.
        data: Pictures anywhere below it; for `supervised` as `data/<label>/*`.
        out: The file to write, as `make_backbone` reads it.
        labelled: Pictures as `labelled/<label>/*` to measure k-NN accuracy on.
        knn_every: Epochs between two such measurements.
        cache: Where small copies of the pictures are kept; the user's cache folder when None.
        workers: Threads that decode and crop.
        on_copy: Is told how many pictures are copied.
        on_step: Is told where the run stands.
    """
    out, data = Path(out), Path(data)
    if not 1 <= workers <= _MOST_WORKERS:
        raise BadInput(f"1 to {_MOST_WORKERS} workers cut crops, not {workers}")
    files = _files(PRETRAINERS[settings.method].labelled, data)
    identity = _identity(settings, data, [file for file, _ in files])
    with ranks.joined() as device, _alone(out):
        if _taken(out):
            return _known(out, identity)
        _check_batch(settings, len(files))
        questions = None if labelled is None else Questions(labelled_files(Path(labelled)), settings.image_size)
        backbone = make_backbone(settings.backbone, 0, weights=settings.weights)
        folder = cache_folder() if cache is None else Path(cache)
        copies = _copied([file for file, _ in files], settings.image_size, folder, on_copy, workers)
        job = _prepared(settings, backbone, dict(files), copies, device, workers, identity, _beside(out, "part"))
        job.questions, job.knn_every = questions, max(knn_every, 1)
        done = train(job, on_step)
        last = job.history[-1]
        found = Pretrained(
            status="trained" if done else "interrupted",
            pictures=job.course.step * settings.batch_size,
            epochs=job.course.step / job.loader.epoch_steps,
            seconds=job.course.seconds,
            history=tuple(job.history),
            warning=collapse(last.watched),
            skipped=copies.skipped,
        )
        if done and ranks.rank() == 0:
            _write(out, backbone, job, {"data": str(data), "settings": identity, **asdict(found)})
        ranks.wait()
        return found


def _beside(out: Path, kind: str) -> Path:
    """A file that belongs to `out`, whatever that is called."""
    return out.with_name(f"{out.name}.{kind}")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keeps other processes from the same file, but for other ranks; says at once where nothing can be written."""
    if ranks.rank() != 0:
        yield
        return
    file = _beside(out, "lock")
    with disk_errors(out):
        lock = Lock(file, lambda pid: f"{out} is being made by process {pid}: wait for it or stop it")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()


def _taken(out: Path) -> bool:
    """Whether the file is there; refuses where writing it would cost another file that is not ours."""
    record = _beside(out, "json")
    if not out.exists() and record.exists() and not _ours(record):
        raise BadInput(f"{record} exists already, and would be written too: choose another name or move it")
    return out.exists()


def _ours(record: Path) -> bool:
    try:
        return {"settings", "history"} <= set(json.loads(record.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return False


def _identity(settings: Settings, folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """What a run is, with what was left open filled in: pictures by names and sizes, a file of weights by content."""
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size if file.exists() else -1
        digest.update(f"{file.relative_to(folder)}\0{size}\0".encode("utf-8", "surrogateescape"))
    named = settings.weights in (RANDOM, PUBLISHED) or not Path(settings.weights).is_file()
    return {
        **asdict(settings),
        "epochs": settings.passes,
        "rate": settings.highest_rate,
        "pictures": digest.hexdigest(),
        "start": None if named else sha256(Path(settings.weights)),
    }


def _check_batch(settings: Settings, pictures: int) -> None:
    if pictures < settings.batch_size:
        raise BadInput(
            f"{pictures:,} pictures do not make a batch of {settings.batch_size}: give more, or a smaller batch size"
        )
    if settings.batch_size % ranks.count():
        raise BadInput(f"a batch of {settings.batch_size} cannot be shared evenly by {ranks.count()} processes")


def _files(labelled: bool, folder: Path) -> list[tuple[Path, str]]:
    if labelled:
        return labelled_files(folder)
    return [(file, "") for file in picture_files(folder)]


def _copied(files: list[Path], image_size: int, folder: Path, notice: Notice | None, workers: int) -> Copies:
    """Copies that one rank makes and all read."""
    if ranks.rank() == 0:
        copied(files, image_size, folder, notice, workers)
    ranks.wait()
    return copied(files, image_size, folder)


def _prepared(
    settings: Settings,
    backbone: Backbone,
    labels: Mapping[Path, str],
    copies: Copies,
    device: torch.device,
    workers: int,
    identity: dict[str, Any],
    checkpoint: Path,
) -> Job:
    """The run that trains the network."""
    kind = PRETRAINERS[settings.method]
    _check_batch(settings, len(copies))  # some may not be readable
    names = {label: index for index, label in enumerate(sorted({labels[file] for file in copies.files}))}
    if kind.labelled and len(names) < 2:
        raise BadInput(f"{settings.method} tells classes apart: give pictures of two or more")
    method = _method(settings, backbone, len(names)).to(device)
    optimizer = make_optimizer(method.parts(), kind.recipe)
    loader = Loader(
        pictures=copies,
        labels=np.array([names[labels[file]] for file in copies.files]),
        plan=kind.plan,
        image_size=settings.image_size,
        batch_size=settings.batch_size,
        seed=settings.seed,
        workers=workers,
    )
    steps = None if settings.passes is None else settings.passes * loader.epoch_steps
    return Job(
        method=method,
        encoder=method.encoder,
        optimizer=optimizer,
        training=kind.recipe,
        rate=settings.highest_rate,
        loader=loader,
        course=Course(steps, settings.seconds),
        settings=identity,
        checkpoint=checkpoint,
    )


def _method(settings: Settings, backbone: Backbone, classes: int) -> Any:
    """The module, its own weights by the seed; torch's global generator is left as it was."""
    kind = PRETRAINERS[settings.method]
    ready = checked_options(settings.method, kind, settings.options) | ({"classes": classes} if kind.labelled else {})
    encoder = Encoder(backbone.top, backbone.features, backbone.scaling, BACKBONES[backbone.name].default_cut)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        method: Any = kind(encoder, **ready)
    method.to(memory_format=torch.channels_last)
    ranks.with_shared_norms(method)
    return method


def _write(out: Path, backbone: Backbone, job: Job, facts: Mapping[str, Any]) -> None:
    """The weights, and beside them what was done; then the checkpoint goes."""
    backbone.top.cpu()
    with torch.no_grad():
        seen = job.encoder.eval().cpu()(torch.full((2, 3, job.loader.image_size, job.loader.image_size), 128.0))
    if not seen.isfinite().all():
        raise BadInput(diverged(job.checkpoint))
    replace_file(_beside(out, "json"), json.dumps({**facts, **provenance()}, indent=1).encode())
    replace_file(out, checkpoint_bytes(backbone))
    job.checkpoint.unlink(missing_ok=True)


def _known(out: Path, identity: Mapping[str, Any]) -> Pretrained:
    """What was done before, if it was this."""
    try:
        facts = json.loads(_beside(out, "json").read_text("utf-8"))
        check_same(out, facts["settings"], identity)
        history = tuple(Epoch(**epoch) for epoch in facts["history"])
        kept = {name: facts[name] for name in ("pictures", "epochs", "seconds", "warning")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{out} exists already: choose another name or remove it first") from error
    return Pretrained("known", history=history, skipped=tuple(facts["skipped"]), **kept)
