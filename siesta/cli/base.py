"""siesta base: a learner that begins with base pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.cli.learner import (
    BackboneOption,
    CutOption,
    ImageSizeOption,
    JsonOption,
    MemoryOption,
    PathArgument,
    SpaceOption,
    WeightsOption,
)
from siesta.cli.output import DONE_IN_PART, INTERRUPTED, console, counting, errors, print_json

if TYPE_CHECKING:
    from rich.progress import TaskID

    from siesta.base import Advance, Initialised

__all__ = ["base"]

_PHASES = {"codec": "looking (codec)", "store": "storing", "train": "training"}


def base(
    path: PathArgument,
    data: Annotated[Path, typer.Option(help="Base pictures as FOLDER/<label>/*; without labels, only the codec.")],
    backbone: BackboneOption = "efficientnet_lite0",
    cut: CutOption = None,
    weights: WeightsOption = "published",
    memory: MemoryOption = "64MB",
    image_size: ImageSizeOption = 224,
    space: SpaceOption = "centred",
    epochs: Annotated[int, typer.Option(help="Of the training: passes over the stored samples.")] = 50,
    lr: Annotated[float | None, typer.Option(help="First learning rate; the network's own if left out.")] = None,
    batch_size: Annotated[int, typer.Option(help="Samples a step of the training.")] = 64,
    seed: Annotated[int, typer.Option(help="Starts every random stream of the learner.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a learner from base pictures: fit its codec, store them, train on them; run again, it goes on.

    Example: siesta base birds.siesta --data photos/base --memory 200MB
    """
    from siesta.base import initialise

    with counting() as bar:
        tasks: dict[str, TaskID] = {}

        def show(advance: Advance) -> None:
            if advance.phase not in tasks:
                tasks[advance.phase] = bar.add_task(_PHASES[advance.phase], total=advance.total)
            loss = f", loss {advance.asleep.loss:.3f}" if advance.asleep else ""
            words = _PHASES[advance.phase] + loss
            bar.update(tasks[advance.phase], completed=advance.done, total=advance.total, description=words)

        try:
            result = initialise(
                path,
                data,
                backbone=backbone,
                cut=cut,
                weights=weights,
                memory=memory,
                image_size=image_size,
                space=space,
                epochs=epochs,
                rate=lr,
                batch_size=batch_size,
                seed=seed,
                notice=show,
            )
        except KeyboardInterrupt:
            bar.stop()
            errors.print("Stopped: what is stored is safe. Run it again to go on.")
            raise typer.Exit(INTERRUPTED) from None
    for reason in result.skipped:
        errors.print(f"skipped: {reason}", style="yellow")
    if 0 < result.stored < result.learned + result.known:
        errors.print(f"the memory holds {result.stored:,} of them: give more --memory to keep all", style="yellow")
    if as_json:
        training = None if result.training is None else result.training.as_dict()
        print_json({**vars(result), "training": training})
    else:
        console.print(_words(path, data, result))
    if result.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if result.skipped:
        raise typer.Exit(DONE_IN_PART)


def _words(path: Path, data: Path, result: Initialised) -> str:
    """What was done, in a sentence or two."""
    if result.status == "known":
        return f"Base initialisation of {path} was done already; nothing was changed."
    if result.training is None:
        return f"Made {path}: its codec is fitted. The pictures in {data} have no labels, so there is nothing to train."
    report = result.training
    woke = "Woke up early, run it again to train anew from here" if report.interrupted else "Trained"
    return (
        f"Stored {result.learned:,} base pictures, {result.known:,} were stored already. {woke}: {report.updates:,} "
        f"updates in {report.seconds:.1f} s over {report.classes:,} classes, loss {report.loss_before:.3f} -> "
        f"{report.loss_after:.3f}{report.held_out_words()}. Teach it more: siesta learn {path} FOLDER"
    )
