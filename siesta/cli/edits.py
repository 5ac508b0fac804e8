"""Commands that edit what was learned: rename, merge, forget, correct, reject; and refit, which renews the codec."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import console, print_json, print_result

__all__ = ["correct", "forget", "merge", "refit", "reject", "rename"]

LabelArgument = Annotated[str, typer.Argument(help="Label of the class.")]


def rename(
    path: PathArgument,
    label: LabelArgument,
    new: Annotated[str, typer.Argument(help="The new label.")],
    as_json: JsonOption = False,
) -> None:
    """Rename a class.

    Example: siesta rename birds.siesta robbin robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.rename(label, new)
    print_result(f"Renamed '{label}' to '{new}'.", as_json, label=label, to=new)


def merge(
    path: PathArgument,
    label: LabelArgument,
    into: Annotated[str, typer.Argument(help="Label of the class that remains.")],
    as_json: JsonOption = False,
) -> None:
    """Merge a class into another one.

    Example: siesta merge birds.siesta "robin redbreast" robin
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        learner.merge(label, into)
    print_result(f"Merged '{label}' into '{into}'.", as_json, label=label, into=into)


def forget(
    path: PathArgument,
    label: Annotated[str | None, typer.Argument(help="Label of the class.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Id of a sample or rejection, as siesta learn --json or siesta reject prints it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a class or one sample: its codes, counts and share of the means, in every stored generation.

    Its influence on the weights of the top remains until later sleeps overwrite it.

    Example: siesta forget birds.siesta wren
    """
    from siesta.errors import BadInput
    from siesta.learner import Siesta

    if (label is None) == (sample is None):
        raise BadInput("give either a class label or --sample")
    with Siesta.open(path) as learner:
        if label is not None:
            learner.forget(label)
        elif sample is not None:
            learner.forget_sample(sample)
    target = f"class {label!r}" if sample is None else f"sample {sample}"
    print_result(f"Forgot {target}.", as_json, label=label, sample=sample)


def refit(
    path: PathArgument,
    base: Annotated[Path, typer.Option(help="A folder of images similar to those learned at present.")],
    as_json: JsonOption = False,
) -> None:
    """Fit the codec again, and convert every stored sample to it.

    Samples that were learned from images in the folder (FOLDER/<label>/*) are encoded from these images again.

    Example: siesta refit birds.siesta --base photos/train
    """
    from siesta.learner import Siesta
    from siesta.learner.refit import refit as refit_learner

    with Siesta.open(path) as learner:
        outcome = refit_learner(learner, base)
    if as_json:
        print_json(asdict(outcome))
        return
    transcoded = outcome.samples - outcome.from_pictures
    console.print(
        f"Relative error {outcome.error_before:.3f} -> {outcome.error_after:.3f}. {outcome.from_pictures:,} samples "
        f"were encoded again from their images; {transcoded:,} were converted from their old codes, which loses "
        "some more detail."
    )


def correct(
    path: PathArgument,
    sample: Annotated[int, typer.Argument(help="Id of the sample, as siesta learn --json prints it.")],
    label: Annotated[str, typer.Argument(help="The right label.")],
    as_json: JsonOption = False,
) -> None:
    """Relabel one sample: it is learned again under the right label and replaces the old one.

    Example: siesta correct birds.siesta 17 wren
    """
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        new_id = learner.correct(sample, label)
    print_result(
        f"Relabelled sample {sample} as '{label}'; its new id is {new_id}.",
        as_json,
        sample=sample,
        label=label,
        new=new_id,
    )


def reject(
    path: PathArgument,
    image: Annotated[Path, typer.Argument(help="The image, or a .npy or .npz file of vectors.")],
    label: Annotated[str, typer.Argument(help="The label that is wrong for it.")],
    as_json: JsonOption = False,
) -> None:
    """Say that a label is wrong for an image: its score falls for what looks like it.

    `siesta forget PATH --sample ID` takes it back.

    Example: siesta reject birds.siesta cat.jpg robin
    """
    from siesta.learner import Siesta
    from siesta.learner.vector_files import unlabelled_inputs

    with Siesta.open(path) as learner:
        given = [learner.read(each) for _, each in unlabelled_inputs(learner, [image])]
        ids = [learner.reject(each, label) for each in given]
    numbers = ", ".join(map(str, ids))
    print_result(f"Rejected '{label}' for {image}; to forget: {numbers}.", as_json, ids=ids, label=label)
