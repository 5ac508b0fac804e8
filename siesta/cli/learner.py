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
    HeadOption,
    ImageSizeOption,
    JsonOption,
    MemoryOption,
    PathArgument,
    SeedOption,
    SpaceOption,
    WeightsOption,
    parse_part_options,
)
from siesta.cli.output import INTERRUPTED, PARTLY_DONE, console, err_console, image_progress, print_json
from siesta.codecs import DEFAULT_CODEC

if TYPE_CHECKING:
    from siesta.learner.folders import LearnedFile

__all__ = ["learn", "new"]


def new(
    path: Annotated[Path, typer.Argument(help="The folder to create.")],
    backbone: BackboneOption = "efficientnet_lite0",
    cut: CutOption = None,
    weights: WeightsOption = "published",
    codec: CodecOption = DEFAULT_CODEC,
    codec_option: CodecOptions = None,
    memory: MemoryOption = "64MB",
    image_size: ImageSizeOption = None,
    base: Annotated[Path | None, typer.Option(help="A folder of images to fit the codec on.")] = None,
    space: SpaceOption = "centred",
    head: HeadOption = "discriminant",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Create an empty learner.

    Example: siesta new birds.siesta --memory 64MB
    """
    from siesta.errors import BadInput
    from siesta.learner import IN_MEMORY, Siesta

    if str(path) == IN_MEMORY:
        raise BadInput(f"{IN_MEMORY} would be lost when the command ends: give a folder instead")
    with Siesta.create(
        path,
        memory=memory,
        backbone=backbone,
        cut=cut,
        codec=codec,
        codec_options=parse_part_options(codec_option),
        weights=weights,
        image_size=image_size,
        base=base,
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
        capacity = learner_info.samples.capacity
        console.print(f"Created {path} with room for {capacity:,} samples. Next: siesta learn {path} FOLDER")


def learn(
    path: PathArgument,
    folder: Annotated[Path, typer.Argument(help="Labelled images, as FOLDER/<label>/*.")],
    durability: Annotated[
        str,
        typer.Option(help="What a learned sample survives: a crash of the process, or also a power failure (power)."),
    ] = "process",
    as_json: JsonOption = False,
) -> None:
    """Learn a folder of labelled images, one by one. Images learned before are skipped, so a rerun continues.

    Example: siesta learn birds.siesta photos/train
    """
    from siesta.errors import SiestaError
    from siesta.learner import Siesta
    from siesta.learner.folders import learn_files, valid_labelled_files

    files = valid_labelled_files(folder)
    counts: Counter[str] = Counter()
    skipped: list[LearnedFile] = []
    samples: dict[str, int] = {}
    with Siesta.open(path, durability=durability) as learner, image_progress() as bar:
        task = bar.add_task("learning", total=len(files))
        try:
            for outcome in learn_files(learner, files):
                counts[outcome.status] += 1
                if outcome.sample is None:
                    skipped.append(outcome)
                else:
                    samples[str(outcome.path)] = outcome.sample
                bar.advance(task)
        except (KeyboardInterrupt, SiestaError) as error:
            bar.stop()
            err_console.print(
                f"Stopped: at least {counts['learned']:,} images are learned and stored. "
                "Run the command again to continue."
            )
            if isinstance(error, SiestaError):
                raise
            raise typer.Exit(INTERRUPTED) from None
    _print_skipped(skipped)
    unreadable = [outcome.reason for outcome in skipped if outcome.status == "unreadable"]
    if as_json:
        totals = {name: counts[name] for name in ("learned", "known", "unreadable", "ignored")}
        print_json({**totals, "skipped": unreadable, "samples": samples})
    else:
        _print_counts(counts)
    if unreadable:
        raise typer.Exit(PARTLY_DONE)


def _print_skipped(skipped: list[LearnedFile]) -> None:
    for outcome in skipped:
        if outcome.status == "ignored":
            err_console.print(f"ignored, not an image: {outcome.path}")
        else:
            err_console.print(f"skipped: {outcome.reason}", style="yellow")


def _print_counts(counts: Counter[str]) -> None:
    console.print(
        f"Learned {counts['learned']:,} images; {counts['known']:,} were known already, "
        f"{counts['unreadable']:,} could not be read."
    )
