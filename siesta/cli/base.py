"""`siesta base`: create a learner and initialise it on base images."""

from __future__ import annotations

from collections.abc import Callable
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
from siesta.extras import require_torch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from siesta.learner.base_init import InitProgress, InitResult

__all__ = ["base"]

DataOption = Annotated[
    Path, typer.Option(help="Base images as FOLDER/<label>/*; images without labels only fit the codec.")
]
_PHASES = {"codec": "fitting the codec", "store": "storing", "train": "training"}


def base(
    path: PathArgument,
    data: DataOption,
    backbone: BackboneOption = "efficientnet_lite0",
    cut: CutOption = None,
    weights: WeightsOption = "published",
    codec: CodecOption = None,
    codec_option: CodecOptions = None,
    memory: MemoryOption = "64MB",
    image_size: ImageSizeOption = None,
    space: SpaceOption = "centred",
    head: HeadOption = "discriminant",
    epochs: Annotated[int, typer.Option(help="Training epochs over the stored samples.")] = 50,
    lr: Annotated[float | None, typer.Option(help="Initial learning rate; default: the backbone's own.")] = None,
    batch_size: Annotated[int, typer.Option(help="Samples in one training step.")] = 64,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Create a learner from base images: fit its codec, store the samples, train on them. A rerun continues.

    Example: siesta base birds.siesta --data photos/base --memory 200MB
    """
    require_torch("base training")
    from siesta.learner.base_init import initialise

    with image_progress() as bar:
        try:
            result = initialise(
                path,
                data,
                backbone=backbone,
                cut=cut,
                weights=weights,
                codec=codec,
                codec_options=parse_part_options(codec_option),
                memory=memory,
                image_size=image_size,
                space=space,
                head=head,
                epochs=epochs,
                lr=lr,
                batch_size=batch_size,
                seed=seed,
                on_progress=_progress_of(bar),
            )
        except KeyboardInterrupt:
            bar.stop()
            err_console.print("Stopped: all samples stored so far are kept. Run the command again to continue.")
            raise typer.Exit(INTERRUPTED) from None
    _finish(path, data, result, as_json)


def _progress_of(bar: Progress) -> Callable[[InitProgress], None]:
    """Return a function that shows progress in a bar, with a task for each phase."""
    tasks: dict[str, TaskID] = {}

    def show(progress: InitProgress) -> None:
        if progress.phase not in tasks:
            tasks[progress.phase] = bar.add_task(_PHASES[progress.phase], total=progress.total)
        loss = f", loss {progress.training.loss:.3f}" if progress.training else ""
        description = _PHASES[progress.phase] + loss
        bar.update(tasks[progress.phase], completed=progress.done, total=progress.total, description=description)

    return show


def _finish(path: Path, data: Path, result: InitResult, as_json: bool) -> None:
    """Print the result, and exit with its code."""
    for reason in result.skipped:
        err_console.print(f"skipped: {reason}", style="yellow")
    if 0 < result.stored < result.learned + result.known:
        err_console.print(
            f"the memory holds only {result.stored:,} of these samples: raise --memory to keep all", style="yellow"
        )
    if as_json:
        training = None if result.training is None else result.training.as_dict()
        print_json({**vars(result), "training": training})
    else:
        console.print(_summary(path, data, result))
    if result.status == "interrupted" or result.skipped:
        raise typer.Exit(INTERRUPTED if result.status == "interrupted" else PARTLY_DONE)


def _summary(path: Path, data: Path, result: InitResult) -> str:
    """Return one or two sentences that report what was done."""
    if result.status == "known":
        return f"The base initialisation of {path} is already complete; nothing was changed."
    stored = f"Stored {result.learned:,} base images; {result.known:,} were stored already."
    if result.status == "interrupted":
        return f"{stored} Training was interrupted. Run the command again to continue it."
    if result.training is None:
        return f"Created {path} and fitted its codec. The images in {data} have no labels, so nothing was trained."
    report = result.training
    return (
        f"{stored} Trained: {report.updates:,} updates in {report.seconds:.1f} s over {report.classes:,} classes, "
        f"loss {report.loss_before:.3f} -> {report.loss_after:.3f}{report.held_out_summary()}. "
        f"Next: siesta learn {path} FOLDER"
    )
