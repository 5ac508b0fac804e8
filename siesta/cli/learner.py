"""Commands that change a learner: new, learn, sleep."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.augment import explain_augmentations
from siesta.cli.output import DONE_IN_PART, INTERRUPTED, console, counting, errors, print_json, sleeping
from siesta.policies import DEFAULT_POLICY, explain_policies

if TYPE_CHECKING:
    from siesta.contracts import Progress

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
    "sleep",
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
    as_json: JsonOption = False,
) -> None:
    """Teach a folder of pictures, each at once; run again, it goes on where it stopped.

    Example: siesta learn birds.siesta photos/train
    """
    from siesta.folders import checked_files, teach
    from siesta.learner import Siesta

    files = checked_files(folder)
    counts: Counter[str] = Counter()
    unreadable: list[str] = []
    with Siesta.open(path) as learner, counting() as bar:
        task = bar.add_task("learning", total=len(files))
        try:
            for outcome in teach(learner, files):
                counts[outcome.status] += 1
                if outcome.status == "unreadable":
                    unreadable.append(outcome.reason)
                bar.advance(task)
        except KeyboardInterrupt:
            bar.stop()
            errors.print(f"Stopped: {counts['learned']:,} learned and safe. Run it again to go on.")
            raise typer.Exit(INTERRUPTED) from None
    for reason in unreadable:
        errors.print(f"skipped: {reason}", style="yellow")
    if as_json:
        names = ("learned", "known", "unreadable")
        print_json({**{name: counts[name] for name in names}, "skipped": unreadable})
    else:
        console.print(
            f"Learned {counts['learned']:,} pictures, {counts['known']:,} were known already, "
            f"{counts['unreadable']:,} could not be read."
        )
    if unreadable:
        raise typer.Exit(DONE_IN_PART)


def sleep(
    path: PathArgument,
    updates: Annotated[int | None, typer.Option(help="Budget in updates (samples rehearsed).")] = None,
    seconds: Annotated[float | None, typer.Option(help="Budget in seconds.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Budget in minutes.")] = None,
    until: Annotated[str | None, typer.Option(help="Budget as a time of day, like 06:30.")] = None,
    policy: Annotated[str, typer.Option(help=f"What to rehearse. {explain_policies()}.")] = DEFAULT_POLICY,
    augment: Annotated[
        str | None, typer.Option(help=f"Mix pairs of samples; none are if left out. {explain_augmentations()}.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Samples a step.")] = 64,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate; the network's own if left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed and updates, same weights.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Consolidate within a budget; Ctrl-C wakes it up early with what it has.

    Example: siesta sleep birds.siesta --minutes 10
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner, sleeping() as bar:
        task = bar.add_task("asleep", total=1.0, words="falling asleep")

        def show(progress: Progress) -> None:
            words = (
                f"loss {progress.loss:.3f}  rate {progress.rate:.4f}  "
                f"{progress.updates:,} updates, {progress.updates_per_second:.0f}/s  {progress.seconds_left:.0f} s left"
            )
            bar.update(task, completed=progress.fraction, words=words)

        report = learner.sleep(
            updates=updates,
            seconds=seconds,
            minutes=minutes,
            until=until,
            policy=policy,
            augment=augment,
            batch_size=batch_size,
            rate=lr,
            seed=seed,
            on_progress=show,
        )
    if as_json:
        print_json(report.as_dict())
    else:
        woke = "Woke up early" if report.interrupted else "Slept"
        console.print(
            f"{woke}: {report.updates:,} updates in {report.seconds:.1f} s over {report.samples:,} samples of "
            f"{report.classes:,} classes ({report.new_classes:,} new). Loss {report.loss_before:.3f} -> "
            f"{report.loss_after:.3f}, top changed by {100 * report.top_change:.2f} %. "
            f"Generation {report.generation} is in use."
        )
    if report.loss_after > 1.2 * report.loss_before:
        errors.print("The loss rose: sleep longer, or with a lower --lr.", style="yellow")
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)
