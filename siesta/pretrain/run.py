"""A run from a folder of pictures to a file of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from siesta.backbones import BACKBONES, make_backbone
from siesta.contracts import Backbone
from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput
from siesta.halfway import checked_run
from siesta.pretrain import PRETRAINERS, ranks
from siesta.pretrain.course import Course
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import Questions
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import Loader
from siesta.pretrain.loop import Job, OnStep, diverged, train
from siesta.pretrain.options import checked_options
from siesta.pretrain.pictures import Copies, Notice, cache_folder, copied
from siesta.pretrain.result import Pretrained, ResultFile
from siesta.pretrain.settings import Settings
from siesta.pretrain.watch import collapse

__all__ = ["pretrain"]

_MOST_WORKERS = 256


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
    data, result = Path(data), ResultFile(Path(out))
    if not 1 <= workers <= _MOST_WORKERS:
        raise BadInput(f"1 to {_MOST_WORKERS} workers cut crops, not {workers}")
    if knn_every < 1:
        raise BadInput(f"k-NN is measured every so many epochs, at least one, not {knn_every}")
    files = _files(PRETRAINERS[settings.method].labelled, data)
    identity = settings.identity(data, [file for file, _ in files])
    with ranks.joined() as device, result.alone():
        if known := result.known(identity):
            return known
        if result.checkpoint.exists():
            checked_run(result.checkpoint, identity)  # before pictures are copied for nothing
        _check_batch(settings, len(files))
        questions = None if labelled is None else Questions(labelled_files(Path(labelled)), settings.image_size)
        backbone = make_backbone(settings.backbone, 0, weights=settings.weights)
        folder = cache_folder() if cache is None else Path(cache)
        copies = _copied([file for file, _ in files], settings.image_size, folder, on_copy, workers)
        job = _prepared(settings, backbone, dict(files), copies, device, workers, identity, result.checkpoint)
        job.questions, job.knn_every = questions, knn_every
        done = train(job, on_step)
        unread = [*copies.skipped, *(questions.skipped if questions else ())]
        found = _found(job, done, settings.batch_size, tuple(dict.fromkeys(unread)))  # they may be the same pictures
        if done and ranks.rank() == 0:
            _check_answers(backbone, job)
            result.write(backbone, {"data": str(data), "settings": identity, **asdict(found)})
        ranks.wait()
        return found


def _check_batch(settings: Settings, pictures: int) -> None:
    if pictures < settings.batch_size:
        raise BadInput(
            f"{pictures:,} pictures do not make a batch of {settings.batch_size}: give more, or a smaller batch size"
        )
    if settings.batch_size % ranks.count():
        raise BadInput(
            f"a batch of {settings.batch_size} cannot be shared evenly by {ranks.count()} processes: "
            f"choose a batch size that is a multiple of {ranks.count()}"
        )


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


def _found(job: Job, done: bool, batch_size: int, skipped: tuple[str, ...]) -> Pretrained:
    return Pretrained(
        status="trained" if done else "interrupted",
        pictures=job.course.step * batch_size,
        epochs=job.course.step / job.loader.epoch_steps,
        seconds=job.course.seconds,
        history=tuple(job.history),
        warning=collapse(job.history[-1].watched),
        skipped=skipped,
    )


def _check_answers(backbone: Backbone, job: Job) -> None:
    """Weights that give no numbers are not written."""
    backbone.top.cpu()
    with torch.no_grad():
        seen = job.encoder.eval().cpu()(torch.full((2, 3, job.loader.image_size, job.loader.image_size), 128.0))
    if not seen.isfinite().all():
        raise BadInput(diverged(job.checkpoint))
