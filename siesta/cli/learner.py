"""Commands that make and teach a learner: new, learn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.output import DONE_IN_PART, INTERRUPTED, console, counting, errors, print_json

__all__ = [
    "BackboneOption",
    "CutOption",
    "ImageSizeOption",
    "JsonOption",
    "MemoryOption",
    "PathArgument",
    "SpaceOption",
    "WeightsOption",
    "learn",
    "new",
]

PathArgument = Annotated[Path, typer.Argument(help="The learner's folder.")]
BackboneOption = Annotated[str, typer.Option(help="The network.")]
CutOption = Annotated[int | None, typer.Option(help="Layers below the cut; the backbone's default if left out.")]
WeightsOption = Annotated[
    str, typer.Option(help="A file of weights, published (they come with efficientnet_lite0 only) or random.")
]
MemoryOption = Annotated[str, typer.Option(help="Room for samples, like 64MB, 1GiB or '500 samples'.")]
ImageSizeOption = Annotated[int, typer.Option(help="Side in pixels that pictures are brought to.")]
SpaceOption = Annotated[
    str, typer.Option(help="Where class means live: centred, plain (the paper's), linear or linear_centred.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def new(
    path: Annotated[Path, typer.Argument(help="The folder to make.")],
    backbone: BackboneOption = "efficientnet_lite0",
    cut: CutOption = None,
    weights: WeightsOption = "published",
    codec: Annotated[
        str, typer.Option(help="How samples are stored: opq, or raw for the pictures themselves.")
    ] = "opq",
    memory: MemoryOption = "64MB",
    image_size: ImageSizeOption = 224,
    base: Annotated[Path | None, typer.Option(help="A folder of pictures to fit the codec on.")] = None,
    space: SpaceOption = "centred",
    seed: Annotated[int, typer.Option(help="Starts every random stream of the learner.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make an empty learner.

    Example: siesta new birds.siesta --memory 64MB
    """
    from siesta.errors import BadInput
    from siesta.learner import IN_MEMORY, Siesta

    if str(path) == IN_MEMORY:
        raise BadInput(f"a learner in memory would be gone at once: give a folder, not {IN_MEMORY}")
    with Siesta.create(
        path,
        memory=memory,
        backbone=backbone,
        cut=cut,
        codec=codec,
        weights=weights,
        image_size=image_size,
        base=base,
        space=space,
        seed=seed,
    ) as learner:
        facts = learner.info()
    for name in facts["backbone"]["weights"]["ignored"]:
        errors.print(f"not used: {name} of {weights}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json(facts)
    else:
        room = facts["samples"]["capacity"]
        console.print(f"Made {path}: room for {room:,} samples. Teach it: siesta learn {path} FOLDER")


def learn(
    path: PathArgument,
    folder: Annotated[Path, typer.Argument(help="Pictures as FOLDER/<label>/*.")],
    durability: Annotated[
        str, typer.Option(help="What what was learned survives: the death of the process, or of the machine (power).")
    ] = "process",
    as_json: JsonOption = False,
) -> None:
    """Teach a folder of pictures, each at once; run again, it goes on where it stopped.

    Example: siesta learn birds.siesta photos/train
    """
    from siesta.errors import SiestaError
    from siesta.folders import checked_files, teach
    from siesta.learner import Siesta

    files = checked_files(folder)
    counts: Counter[str] = Counter()
    unreadable: list[str] = []
    samples: dict[str, int] = {}
    with Siesta.open(path, durability=durability) as learner, counting() as bar:
        task = bar.add_task("learning", total=len(files))
        try:
            for outcome in teach(learner, files):
                counts[outcome.status] += 1
                if outcome.sample is None:
                    unreadable.append(outcome.reason)
                else:
                    samples[str(outcome.path)] = outcome.sample
                bar.advance(task)
        except (KeyboardInterrupt, SiestaError) as error:
            bar.stop()
            errors.print(f"Stopped: {counts['learned']:,} learned and safe. Run it again to go on.")
            if isinstance(error, SiestaError):
                raise
            raise typer.Exit(INTERRUPTED) from None
    for reason in unreadable:
        errors.print(f"skipped: {reason}", style="yellow")
    if as_json:
        names = ("learned", "known", "unreadable")
        print_json({**{name: counts[name] for name in names}, "skipped": unreadable, "samples": samples})
    else:
        console.print(
            f"Learned {counts['learned']:,} pictures, {counts['known']:,} were known already, "
            f"{counts['unreadable']:,} could not be read."
        )
    if unreadable:
        raise typer.Exit(DONE_IN_PART)
