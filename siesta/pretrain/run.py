"""A run from a folder of pictures to a file of weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from siesta.backbones import BACKBONES, MIN_IMAGE_SIZE, RANDOM, make_backbone, save_checkpoint
from siesta.contracts import Backbone
from siesta.data import labelled_files, picture_files
from siesta.data.options import checked
from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS, ranks
from siesta.pretrain.checkpoint import check_same
from siesta.pretrain.course import Course
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import Questions
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import Loader
from siesta.pretrain.loop import Epoch, Job, OnStep, train
from siesta.pretrain.pictures import Copies, Notice, cache_folder, copied
from siesta.pretrain.watch import collapse
from siesta.provenance import provenance

__all__ = ["EPOCHS", "Pretrained", "Settings", "pretrain"]

EPOCHS = 2000


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
        for name, least in (("image_size", MIN_IMAGE_SIZE), ("epochs", 1), ("batch_size", 2), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BadInput(f"{name.replace('_', ' ')} is {least} or more, not {value}")
        for name in ("seconds", "rate"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise BadInput(f"{name} must be above zero, not {value}")

    @property
    def passes(self) -> int | None:
        """Epochs to train; None for a run by time."""
        return (self.epochs or EPOCHS) if self.seconds is None else None


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

    What it did is in a JSON file beside `out`; while it is not done, `out.part` has all of it.

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
    out = Path(out)
    if not out.parent.is_dir():
        raise BadInput(f"the folder of {out} does not exist: make it first")
    with ranks.joined() as device:
        if out.exists():
            return _known(out, settings)
        files = _files(PRETRAINERS[settings.method].labelled, Path(data))
        questions = None if labelled is None else Questions(labelled_files(Path(labelled)), settings.image_size)
        folder = cache_folder() if cache is None else Path(cache)
        copies = _copied([file for file, _ in files], settings.image_size, folder, on_copy, workers)
        backbone, job = _prepared(settings, dict(files), copies, out, device, workers)
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
            _write(out, backbone, job, found)
        ranks.wait()
        return found


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
    settings: Settings, labels: Mapping[Path, str], copies: Copies, out: Path, device: torch.device, workers: int
) -> tuple[Backbone, Job]:
    """The network, and the run that trains it."""
    kind = PRETRAINERS[settings.method]
    if len(copies) < settings.batch_size:
        raise BadInput(
            f"{len(copies):,} pictures do not make a batch of {settings.batch_size}: give more, or a smaller batch size"
        )
    if settings.batch_size % ranks.count():
        raise BadInput(f"a batch of {settings.batch_size} cannot be shared evenly by {ranks.count()} processes")
    names = {label: index for index, label in enumerate(sorted({labels[file] for file in copies.files}))}
    backbone = make_backbone(settings.backbone, 0, weights=settings.weights)
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
    rate = kind.recipe.rate * settings.batch_size / kind.recipe.batch if settings.rate is None else settings.rate
    return backbone, Job(
        method=method,
        encoder=method.encoder,
        optimizer=optimizer,
        training=kind.recipe,
        rate=rate,
        loader=loader,
        course=Course(steps, settings.seconds),
        settings={**asdict(settings), "pictures": len(copies)},
        checkpoint=out.with_name(f"{out.name}.part"),
    )


def _method(settings: Settings, backbone: Backbone, classes: int) -> Any:
    """The module, its own weights by the seed; torch's global generator is left as it was."""
    kind = PRETRAINERS[settings.method]
    options = {**settings.options, "classes": classes} if kind.labelled else dict(settings.options)
    ready = checked(f"method {settings.method}", kind, options)
    for name, value in ready.items():
        if isinstance(value, (int, float)) and value < (1 if isinstance(value, int) else 0):
            raise BadInput(f"option '{name}' of method {settings.method} is too small: {value}")
    encoder = Encoder(backbone.top, backbone.features, backbone.scaling, BACKBONES[backbone.name].default_cut)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        method: Any = kind(encoder, **ready)
    method.to(memory_format=torch.channels_last)
    ranks.with_shared_norms(method)
    return method


def _write(out: Path, backbone: Backbone, job: Job, found: Pretrained) -> None:
    """The weights, and beside them what was done; then the checkpoint goes."""
    backbone.top.cpu()
    new = out.with_name(f"{out.name}.new")
    save_checkpoint(backbone, new)
    facts = {"settings": job.settings, "rate": job.rate, **asdict(found), **provenance()}
    out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    new.replace(out)
    job.checkpoint.unlink(missing_ok=True)


def _known(out: Path, settings: Settings) -> Pretrained:
    """What was done before, if it was this."""
    try:
        facts = json.loads(out.with_suffix(".json").read_text("utf-8"))
        check_same(out, facts["settings"], asdict(settings))
        history = tuple(Epoch(**epoch) for epoch in facts["history"])
        kept = {name: facts[name] for name in ("pictures", "epochs", "seconds", "warning")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{out} exists already: choose another name or remove it first") from error
    return Pretrained("known", history=history, skipped=tuple(facts["skipped"]), **kept)
