"""Commands to change one's mind: rename, merge, forget, correct, refit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.learner import JsonOption, PathArgument
from siesta.cli.output import console, print_json, say

__all__ = ["correct", "forget", "merge", "refit", "rename"]

LabelArgument = Annotated[str, typer.Argument(help="A class, by its label.")]


def rename(
    path: PathArgument,
    label: LabelArgument,
    new: Annotated[str, typer.Argument(help="Its new label.")],
    as_json: JsonOption = False,
) -> None:
    """Give a class another name.

    Example: siesta rename birds.siesta robbin robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.rename(label, new)
    say(f"'{label}' is '{new}' now.", as_json, label=label, to=new)


def merge(
    path: PathArgument,
    label: LabelArgument,
    into: Annotated[str, typer.Argument(help="The class that stays.")],
    as_json: JsonOption = False,
) -> None:
    """Make one class of two.

    Example: siesta merge birds.siesta "robin redbreast" robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.merge(label, into)
    say(f"What was taught as '{label}' is '{into}' now.", as_json, label=label, into=into)


def forget(
    path: PathArgument,
    label: Annotated[str | None, typer.Argument(help="A class, by its label.")] = None,
    sample: Annotated[
        int | None, typer.Option(help="One sample instead, by the id that siesta learn --json gives.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Forget a class, or one sample: codes, counts and means, in every generation that is kept.

    What they taught the upper layers stays in these, until later sleeps wear it away.

    Example: siesta forget birds.siesta wren
    """
    from siesta.errors import BadInput
    from siesta.learner import Siesta

    if (label is None) == (sample is None):
        raise BadInput("say what to forget: a class, or a sample with --sample")
    with Siesta.open(path) as learner:
        if label is not None:
            learner.forget(label)
        elif sample is not None:
            learner.forget_sample(sample)
    what = f"class {label!r}" if sample is None else f"sample {sample}"
    say(f"Forgotten: {what}.", as_json, label=label, sample=sample)


def refit(
    path: PathArgument,
    base: Annotated[Path, typer.Option(help="A folder of pictures like those that are taught now.")],
    as_json: JsonOption = False,
) -> None:
    """Fit the codec anew, and bring every stored sample to it.

    Samples whose pictures are in the folder, as FOLDER/<label>/* and taught from there, are made of these again.

    Example: siesta refit birds.siesta --base photos/train
    """
    from siesta.learner import Siesta
    from siesta.refit import refit as renew

    with Siesta.open(path) as learner:
        found = renew(learner, base)
    if as_json:
        print_json(asdict(found))
        return
    rest = found.samples - found.from_pictures
    console.print(
        f"Relative error {found.error_before:.3f} -> {found.error_after:.3f}. {found.from_pictures:,} samples were "
        f"made of their pictures again, {rest:,} of what the old codec had kept of them: these have lost a second time."
    )


def correct(
    path: PathArgument,
    sample: Annotated[int, typer.Argument(help="A sample, by the id that siesta learn --json gives.")],
    label: Annotated[str, typer.Argument(help="What it really is.")],
    as_json: JsonOption = False,
) -> None:
    """Teach a sample anew under another label, in the place of the old one.

    Example: siesta correct birds.siesta 17 wren
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        new = learner.correct(sample, label)
    say(f"Sample {sample} is '{label}' now, as sample {new}.", as_json, sample=sample, label=label, new=new)
