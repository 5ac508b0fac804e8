"""Commands that create and teach a learner: new, learn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.cli.options import (
    BackboneOption,
    CodecOption,
    CodecOptions,
    CutOption,
    DataArgument,
    FeaturesOption,
    HeadOption,
    ImageSizeOption,
    JsonOption,
    LabelsOption,
    MemoryOption,
    PathArgument,
    SeedOption,
    SpaceOption,
    TopLayersOption,
    WeightsOption,
    parse_part_options,
)
from siesta.cli.output import INTERRUPTED, PARTLY_DONE, console, err_console, image_progress, print_json

if TYPE_CHECKING:
    from siesta.learner import LearnerInfo
    from siesta.learner.sources import LearnedFile

__all__ = ["learn", "new"]


def new(
    path: Annotated[Path, typer.Argument(help="The folder to create.")],
    backbone: BackboneOption = "efficientnet_lite0",
    cut: CutOption = None,
    features: FeaturesOption = None,
    top_layers: TopLayersOption = None,
    weights: WeightsOption = "published",
    codec: CodecOption = None,
    codec_option: CodecOptions = None,
    memory: MemoryOption = "64MB",
    image_size: ImageSizeOption = None,
    base: Annotated[
        Path | None, typer.Option(help="A folder of images, or a file of vectors, to fit the codec on.")
    ] = None,
    space: SpaceOption = "centred",
    head: HeadOption = "discriminant",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Create an empty learner.

    Example: siesta new birds.siesta --memory 64MB
    """
    from siesta.learner import Siesta
    from siesta.vectors import read_vectors

    _check_lasting(path)
    with Siesta.create(
        path,
        memory=memory,
        backbone=backbone,
        cut=cut,
        features=features,
        top_layers=top_layers,
        codec=codec,
        codec_options=parse_part_options(codec_option),
        weights=weights,
        image_size=image_size,
        base=base if base is None or features is None else read_vectors(base),
        space=space,
        head=head,
        seed=seed,
    ) as learner:
        learner_info = learner.info()
    for name in learner_info.backbone.weights.ignored:
        err_console.print(f"not used: {name} of {weights}", style="yellow")
    if as_json:
        print_json(learner_info.as_dict())
    else:
        _print_created(path, learner_info)


def _check_lasting(path: Path) -> None:
    """Raise `BadInput` for a learner in RAM."""
    from siesta.errors import BadInput
    from siesta.learner import IN_MEMORY

    if str(path) == IN_MEMORY:
        raise BadInput(f"{IN_MEMORY} would be lost when the command ends: give a folder instead")


def _print_created(path: Path, learner_info: LearnerInfo) -> None:
    data = "FOLDER" if learner_info.backbone.features is None else "FILE.npz"
    capacity = learner_info.samples.capacity
    console.print(f"Created {path} with room for {capacity:,} samples. Next: siesta learn {path} {data}")


def learn(
    path: PathArgument,
    data: DataArgument,
    labels: LabelsOption = None,
    durability: Annotated[
        str,
        typer.Option(help="What a learned sample survives: a crash of the process, or also a power failure (power)."),
    ] = "process",
    as_json: JsonOption = False,
) -> None:
    """Learn labelled images, or vectors, one by one. Those that were learned before are skipped, so a rerun continues.

    Example: siesta learn birds.siesta photos/train
    """
    from siesta.errors import SiestaError
    from siesta.learner import Siesta
    from siesta.learner.sources import learn_sources
    from siesta.learner.vector_files import labelled_sources

    counts: Counter[str] = Counter()
    skipped: list[LearnedFile] = []
    samples: dict[str, int] = {}
    with Siesta.open(path, durability=durability) as learner, image_progress() as bar:
        noun = learner.pipeline.input.noun
        sources = labelled_sources(learner, data, labels)
        task = bar.add_task("learning", total=len(sources))
        try:
            for outcome in learn_sources(learner, sources):
                counts[outcome.status] += 1
                if outcome.sample is None:
                    skipped.append(outcome)
                else:
                    samples[str(outcome.path)] = outcome.sample
                bar.advance(task)
        except (KeyboardInterrupt, SiestaError) as error:
            bar.stop()
            learned = f"at least {counts['learned']:,} {noun}s are learned and stored"
            err_console.print(f"Stopped: {learned}. Run the command again to continue.")
            if isinstance(error, SiestaError):
                raise
            raise typer.Exit(INTERRUPTED) from None
    _print_skipped(skipped)
    if as_json:
        reasons = [outcome.reason for outcome in skipped if outcome.status == "unreadable"]
        print_json({**_totals(counts), "skipped": reasons, "samples": samples})
    else:
        _print_counts(counts, noun)
    if counts["unreadable"]:
        raise typer.Exit(PARTLY_DONE)


def _totals(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("learned", "known", "unreadable", "ignored")}


def _print_skipped(skipped: list[LearnedFile]) -> None:
    for outcome in skipped:
        if outcome.status == "ignored":
            err_console.print(f"ignored, not an image: {outcome.path}")
        else:
            err_console.print(f"skipped: {outcome.reason}", style="yellow")


def _print_counts(counts: Counter[str], noun: str) -> None:
    console.print(
        f"Learned {counts['learned']:,} {noun}s; {counts['known']:,} were known already, "
        f"{counts['unreadable']:,} could not be read."
    )
