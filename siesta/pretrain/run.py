"""A pre-training run, from a folder of images to a file of weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from siesta.backbones import BACKBONES, make_backbone
from siesta.backbones.layers import channels_last
from siesta.contracts import Backbone
from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput
from siesta.files import cache_folder
from siesta.pretrain import PRETRAINERS, distributed
from siesta.pretrain.collapse import collapse_warning
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import KnnPictures
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import CropLoader
from siesta.pretrain.loop import OnStep, PretrainRun, divergence_message, train
from siesta.pretrain.options import check_method_options
from siesta.pretrain.picture_cache import OnCopy, PictureCache, cache_pictures
from siesta.pretrain.progress import TrainingProgress
from siesta.pretrain.result import OutputFile, PretrainResult
from siesta.pretrain.settings import PretrainSettings
from siesta.sleep.resume import read_run_state

__all__ = ["pretrain"]

_MAX_WORKERS = 256


def pretrain(
    settings: PretrainSettings,
    data: str | Path,
    out: str | Path,
    *,
    labelled: str | Path | None = None,
    knn_every: int = 1,
    cache: str | Path | None = None,
    workers: int = 1,
    on_copy: OnCopy | None = None,
    on_step: OnStep | None = None,
) -> PretrainResult:
    """Train a network on a folder of images and write its weights; the same call resumes an interrupted run.

    The record of the run is written to `out.json`; until the run is done, `out.part` is its checkpoint.

    Args:
        settings: What to train, and how.
        data: Folder with images at any depth; for `supervised`, `data/<label>/*`.
        out: File to write, in the format that `make_backbone` reads.
        labelled: Images as `labelled/<label>/*` to measure k-NN accuracy on.
        knn_every: Epochs between two such measurements.
        cache: Folder for reduced copies of the images; the user's cache folder when None.
        workers: Number of threads that decode and crop.
        on_copy: Called with the number of images that are copied.
        on_step: Called with the state of the run after each step.
    """
    _check_arguments(workers, knn_every)
    data = Path(data)
    output = OutputFile(Path(out))
    labels = _picture_labels(PRETRAINERS[settings.method].needs_labels, data)
    identity = settings.identity(data, list(labels))
    with distributed.process_group() as device, output.locked():
        if result := output.finished_result(identity):
            return result
        if output.checkpoint.exists():
            read_run_state(output.checkpoint, identity)  # refuses other settings before images are copied
        _check_batch(settings, len(labels))
        knn_pictures = None if labelled is None else KnnPictures(labelled_files(Path(labelled)), settings.image_size)
        backbone = make_backbone(settings.backbone, 0, weights=settings.weights, image_size=settings.image_size)
        folder = cache_folder("pictures") if cache is None else Path(cache)
        pictures = _cached_pictures(list(labels), settings.image_size, folder, on_copy, workers)
        classes = _class_indices(settings, [labels[file] for file in pictures.files])
        method = _make_method(settings, backbone, int(classes.max()) + 1).to(device)
        loader = _make_loader(settings, pictures, classes, workers)
        run = _make_run(settings, method, loader, identity, output.checkpoint)
        run.knn_pictures = knn_pictures
        run.knn_every = knn_every
        return _train_and_write(run, backbone, output, data, on_step)


def _train_and_write(
    run: PretrainRun, backbone: Backbone, output: OutputFile, data: Path, on_step: OnStep | None
) -> PretrainResult:
    done = train(run, on_step)
    result = _result(run, done)
    if done and distributed.rank() == 0:
        _check_finite(backbone, run)
        output.write(backbone, {"data": str(data), "settings": run.settings, **asdict(result)})
    distributed.barrier()
    return result


def _check_arguments(workers: int, knn_every: int) -> None:
    if not 1 <= workers <= _MAX_WORKERS:
        raise BadInput(f"workers must be in 1..{_MAX_WORKERS}, not {workers}")
    if knn_every < 1:
        raise BadInput(f"the number of epochs between two k-NN measurements must be at least 1, not {knn_every}")


def _check_batch(settings: PretrainSettings, pictures: int) -> None:
    if pictures < settings.batch_size:
        raise BadInput(
            f"{pictures:,} images do not make a batch of {settings.batch_size}: give more, or a smaller batch size"
        )
    if settings.batch_size % distributed.world_size():
        raise BadInput(
            f"a batch of {settings.batch_size} cannot be divided evenly among {distributed.world_size()} processes: "
            f"choose a batch size that is a multiple of {distributed.world_size()}"
        )


def _picture_labels(needs_labels: bool, folder: Path) -> dict[Path, str]:
    """Return the images of a folder with their labels, which are empty where none are needed."""
    if needs_labels:
        return dict(labelled_files(folder))
    return dict.fromkeys(picture_files(folder), "")


def _cached_pictures(
    files: list[Path], image_size: int, folder: Path, on_copy: OnCopy | None, workers: int
) -> PictureCache:
    """Return copies of images, which one rank makes and all read."""
    if distributed.rank() == 0:
        cache_pictures(files, image_size, folder, on_copy, workers)
    distributed.barrier()
    return cache_pictures(files, image_size, folder)


def _class_indices(settings: PretrainSettings, labels: list[str]) -> npt.NDArray[np.int64]:
    """Return the class index of each readable image, (N,)."""
    _check_batch(settings, len(labels))  # again, because some images may be unreadable
    numbers = {label: index for index, label in enumerate(sorted(set(labels)))}
    if PRETRAINERS[settings.method].needs_labels and len(numbers) < 2:
        raise BadInput(f"{settings.method} needs images of at least two classes: give FOLDER/<label>/*")
    return np.array([numbers[label] for label in labels])


def _make_method(settings: PretrainSettings, backbone: Backbone, classes: int) -> Any:
    """Return the method's module, initialised by the seed; torch's global generator is left as it was."""
    method_type = PRETRAINERS[settings.method]
    options = check_method_options(settings.method, method_type, settings.options)
    if method_type.needs_labels:
        options["classes"] = classes
    encoder = Encoder(backbone.top, backbone.features, backbone.normalization, BACKBONES[backbone.name].default_cut)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        method: Any = method_type(encoder, **options)
    channels_last(method)
    distributed.convert_batch_norms(method)
    return method


def _make_loader(
    settings: PretrainSettings, pictures: PictureCache, classes: npt.NDArray[np.int64], workers: int
) -> CropLoader:
    return CropLoader(
        pictures=pictures,
        labels=classes,
        crop_specs=PRETRAINERS[settings.method].crop_specs,
        image_size=settings.image_size,
        batch_size=settings.batch_size,
        seed=settings.seed,
        workers=workers,
    )


def _make_run(
    settings: PretrainSettings, method: Any, loader: CropLoader, identity: dict[str, Any], checkpoint: Path
) -> PretrainRun:
    steps = None if settings.total_epochs is None else settings.total_epochs * loader.epoch_steps
    return PretrainRun(
        method=method,
        encoder=method.encoder,
        optimizer=make_optimizer(method.param_groups(), method.recipe),
        recipe=method.recipe,
        lr=settings.max_lr,
        loader=loader,
        progress=TrainingProgress(steps, settings.seconds),
        settings=identity,
        checkpoint=checkpoint,
    )


def _result(run: PretrainRun, done: bool) -> PretrainResult:
    skipped = [*run.loader.pictures.skipped, *(run.knn_pictures.skipped if run.knn_pictures else ())]
    return PretrainResult(
        status="trained" if done else "interrupted",
        pictures=run.progress.step * run.loader.batch_size,
        epochs=run.progress.step / run.loader.epoch_steps,
        seconds=run.progress.seconds,
        history=tuple(run.history),
        warning=collapse_warning(run.history[-1].watched),
        skipped=tuple(dict.fromkeys(skipped)),  # without duplicates: both may be the same folder
    )


def _check_finite(backbone: Backbone, run: PretrainRun) -> None:
    """Refuse weights whose outputs are not finite; the last step may have diverged."""
    backbone.top.cpu()
    size = run.loader.image_size
    with torch.no_grad():
        z = run.encoder.eval().cpu()(torch.full((2, 3, size, size), 128.0))
    if not z.isfinite().all():
        raise BadInput(divergence_message(run.checkpoint))
