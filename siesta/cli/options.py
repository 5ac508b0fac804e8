"""Arguments and options that several commands share, as annotated types, and options of parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from siesta.backbones.vectors import DEFAULT_TOP_LAYERS
from siesta.codecs import DEFAULT_CODEC, VECTOR_CODEC, explain_codecs

__all__ = [
    "BackboneOption",
    "CodecOption",
    "CodecOptions",
    "CutOption",
    "DataArgument",
    "FeaturesOption",
    "HeadOption",
    "ImageSizeOption",
    "JsonOption",
    "LabelsOption",
    "MemoryOption",
    "PathArgument",
    "SeedOption",
    "SleeperOption",
    "SleeperTokenFileOption",
    "SpaceOption",
    "TopLayersOption",
    "WeightsOption",
    "parse_part_option",
    "parse_part_options",
]

PathArgument = Annotated[Path, typer.Argument(help="The learner's folder.")]
DataArgument = Annotated[
    Path, typer.Argument(help="Labelled images, as DATA/<label>/*, or vectors in a .npy or .npz file.")
]
BackboneOption = Annotated[str, typer.Option(help="Network to use.")]
CutOption = Annotated[int | None, typer.Option(help="Number of layers below the cut; default: the backbone's own.")]
WeightsOption = Annotated[
    str,
    typer.Option(help="A file of weights, 'published' (those of efficientnet_lite0, 1 and 2), or 'random'."),
]
MemoryOption = Annotated[str, typer.Option(help="Memory for samples, such as 64MB, 1GiB or '500 samples'.")]
ImageSizeOption = Annotated[
    int | None,
    typer.Option(help="Images are resized to this many pixels on each side; default: the backbone's own, 224 to 260."),
]
FeaturesOption = Annotated[
    int | None, typer.Option(help="Length of the vectors that the learner takes in place of images, such as 768.")
]
TopLayersOption = Annotated[
    int | None,
    typer.Option(help="Number of trainable layers over vectors, 1 to 3.", show_default=str(DEFAULT_TOP_LAYERS)),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        help="Labels of vectors: a line of text for each, .npy, or .npz; default: `labels` in their .npz file."
    ),
]
SpaceOption = Annotated[
    str,
    typer.Option(help="Feature space of the class means: centred, plain (the paper's), linear or linear_centred."),
]
CodecOption = Annotated[
    str | None,
    typer.Option(
        help=f"How samples are stored. {explain_codecs()}.",
        show_default=f"{DEFAULT_CODEC}, for vectors {VECTOR_CODEC}",
    ),
]
HeadOption = Annotated[
    str,
    typer.Option(
        help="The head that predicts: discriminant (linear, over statistics of the samples), or cosine (the paper's)."
    ),
]
SeedOption = Annotated[int, typer.Option(help="Seed of all random numbers of the learner.")]
CodecOptions = Annotated[
    list[str] | None,
    typer.Option("--codec-option", help="An option of the codec, like codebooks=32; may be given several times."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SleeperOption = Annotated[
    str | None,
    typer.Option(help="Let the service at this address train, one that siesta sleeper started.", metavar="URL"),
]
SleeperTokenFileOption = Annotated[
    Path | None,
    typer.Option(help="A file with the token for it; else it is in SIESTA_SLEEPER_TOKEN.", metavar="FILE"),
]


def parse_part_option(text: str) -> tuple[str, Any]:
    """Return the name and the value of `name=value`, the value as JSON where it is."""
    from siesta.errors import BadInput

    name, sign, value = text.partition("=")
    if not (name and sign):
        raise BadInput(f"'{text}' is not of the form name=value: write it like prototypes=300")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse_part_options(texts: list[str] | None) -> dict[str, Any]:
    """Return the options that are given as `name=value`, by name."""
    return dict(parse_part_option(text) for text in texts or ())
