"""Initial states of methods: a learner's folder, with or without base initialisation.

Runs with the same order, seed, codec and memory share an initial state. It is built under a temporary name and renamed
when it is complete, so an existing folder is always whole. Its base training is kept in a checkpoint beside it, from
which the next run continues after a kill or an interrupt.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from siesta.backbones import make_space
from siesta.codecs import CODECS
from siesta.data import Dataset, Picture
from siesta.experiment.code_cache import cached_codes
from siesta.experiment.config_schema import BaseConfig
from siesta.experiment.plan import PlannedRun
from siesta.learner import Siesta
from siesta.learner.base_init import train_base
from siesta.sleep.resume import TrainingCheckpoint

__all__ = ["OnActivity", "prepare_initial_state"]

OnActivity = Callable[[str, float], None]
"""Called with a description of the current activity and the fraction of it that is done (0..1)."""


def prepare_initial_state(run: PlannedRun, dataset: Dataset, out: Path, on_activity: OnActivity) -> Path:
    """Return the folder that a run starts from, building it if necessary."""
    folder = out / "starts" / f"{run.initial_state_name}.siesta"
    checkpoint = TrainingCheckpoint(folder.with_name(f"{folder.name}.training"), {})
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            _build(run, dataset, partial, checkpoint, on_activity)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    checkpoint.remove()
    return folder


def _build(
    run: PlannedRun, dataset: Dataset, folder: Path, checkpoint: TrainingCheckpoint, on_activity: OnActivity
) -> None:
    network = run.method.network
    on_activity("creating the initial learner", 0.0)
    with Siesta.create(
        folder,
        memory=f"{run.samples} samples",
        backbone=network.backbone,
        cut=network.cut if CODECS[run.spec.codec].cut is None else None,
        codec=run.spec.codec,
        codec_options=network.codec_options,
        weights=network.weights,
        image_size=run.config.data.image_size,
        base=_codec_pictures(run, dataset),
        space=network.space,
        head=run.head,
        hold_out=False,
        seed=run.seed,
    ) as learner:
        if run.stream.base and run.method.base is not None:
            _store_base(learner, run, dataset, on_activity)
            _train_base(learner, run, run.method.base, checkpoint, on_activity)


def _store_base(learner: Siesta, run: PlannedRun, dataset: Dataset, on_activity: OnActivity) -> None:
    """Store the samples of the base step."""
    cached = cached_codes(
        dataset.train, learner.pipeline, lambda done, total: on_activity("encoding images", done / total)
    )
    first = next(run.stream.steps())
    learner.learn_encoded(cached.codes[first], [dataset.classes[row] for row in dataset.train.labels[first]])


def _train_base(
    learner: Siesta, run: PlannedRun, base: BaseConfig, checkpoint: TrainingCheckpoint, on_activity: OnActivity
) -> None:
    """Train on the samples of the base step, from the checkpoint if it has begun before."""
    train_base(
        learner,
        epochs=base.epochs,
        batch_size=base.batch_size,
        lr=base.lr,
        seed=run.seed,
        mean_share=base.mean_share,
        on_progress=lambda progress: on_activity("base initialisation", progress.fraction),
        checkpoint=checkpoint,
    )


def _codec_pictures(run: PlannedRun, dataset: Dataset) -> Path | list[Picture] | None:
    """Return the images to fit the codec on: the config's folder or the base step; None for the package's codec."""
    network = run.method.network
    if not CODECS[run.spec.codec].needs_fit and not make_space(network.space).centred:
        return None  # neither a codec nor a centre to fit
    if network.codec_pictures is not None:
        return Path(network.codec_pictures)
    if run.base_step is not None:
        return [dataset.train.pictures[int(index)] for index in run.base_step]
    return None
