"""Commands to change one's mind: rename, merge, forget, correct."""

from __future__ import annotations

from typing import Annotated

import typer

from siesta.cli.learner import PathArgument
from siesta.cli.output import console

__all__ = ["correct", "forget", "merge", "rename"]

LabelArgument = Annotated[str, typer.Argument(help="A class, by its label.")]


def rename(
    path: PathArgument, label: LabelArgument, new: Annotated[str, typer.Argument(help="Its new label.")]
) -> None:
    """Give a class another name.

    Example: siesta rename birds.siesta robbin robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.rename(label, new)
    console.print(f"'{label}' is '{new}' now.")


def merge(
    path: PathArgument, label: LabelArgument, into: Annotated[str, typer.Argument(help="The class that stays.")]
) -> None:
    """Make one class of two.

    Example: siesta merge birds.siesta "robin redbreast" robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.merge(label, into)
    console.print(f"What was taught as '{label}' is '{into}' now.")


def forget(
    path: PathArgument,
    label: Annotated[str | None, typer.Argument(help="A class, by its label.")] = None,
    sample: Annotated[int | None, typer.Option(help="One sample instead, by its id.")] = None,
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
    console.print(f"Forgotten: {f'class {label!r}' if sample is None else f'sample {sample}'}.")


def correct(
    path: PathArgument,
    sample: Annotated[int, typer.Argument(help="A sample, by its id.")],
    label: Annotated[str, typer.Argument(help="What it really is.")],
) -> None:
    """Teach a sample anew under another label, in the place of the old one.

    Example: siesta correct birds.siesta 17 wren
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        new = learner.correct(sample, label)
    console.print(f"Sample {sample} is '{label}' now, as sample {new}.")
