"""What every method of an experiment starts from: a learner's folder, with or without base initialisation.

Methods of one order, seed, codec and memory share a start. It is made under another name and renamed when it is
whole, so a start that is there is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from siesta.backbones import make_space
from siesta.base import train_base
from siesta.codecs import Raw
from siesta.data import Dataset, Picture
from siesta.experiment.codes import coded
from siesta.experiment.plan import PlannedRun
from siesta.learner import Siesta

__all__ = ["Say", "start_for"]

Say = Callable[[str, float], None]
"""Told in words what is being done, and how much of it is (0..1)."""


def start_for(run: PlannedRun, dataset: Dataset, out: Path, say: Say) -> Path:
    """The folder that a run starts from, made if it is not there yet."""
    folder = out / "starts" / f"{run.start_name}.siesta"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            _make(run, dataset, partial, say)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _make(run: PlannedRun, dataset: Dataset, folder: Path, say: Say) -> None:
    network, base = run.method.network, run.method.base if run.stream.base else None
    say("making the start", 0.0)
    with Siesta.create(
        folder,
        memory=f"{run.samples} samples",
        backbone=network.backbone,
        cut=None if run.kind.codec == Raw.name else network.cut,
        codec=run.kind.codec,
        weights=network.weights,
        image_size=run.config.data.image_size,
        base=_codec_pictures(run, dataset),
        space=network.space,
        hold_out=False,
        seed=run.seed,
    ) as learner:
        if base:
            codes = coded(
                dataset.train, learner.pipeline, lambda done, total: say("coding pictures", done / total)
            ).codes
            first = next(run.stream.steps())
            learner.learn_encoded(codes[first], [dataset.classes[row] for row in dataset.train.labels[first]])
            report = train_base(
                learner,
                epochs=base.epochs,
                batch_size=base.batch_size,
                rate=base.rate,
                seed=run.seed,
                mean_share=base.mean_share,
                on_progress=lambda progress: say("base initialisation", progress.fraction),
            )
            if report.interrupted:
                raise KeyboardInterrupt


def _codec_pictures(run: PlannedRun, dataset: Dataset) -> Path | list[Picture] | None:
    """What the codec is fitted on: the config's own pictures, those of the base step, or what the package did."""
    network = run.method.network
    if run.kind.codec == Raw.name and not make_space(network.space).centred:
        return None  # there is nothing to fit, and nothing to centre
    if network.codec_pictures is not None:
        return Path(network.codec_pictures)
    if run.base_step is not None:
        return [dataset.train.pictures[int(index)] for index in run.base_step]
    return None
