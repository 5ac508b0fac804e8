"""What a new learner needs from base pictures before it can learn: a codec, and the centre of its features.

They come with the package for the default backbone, or are fitted on a folder (the paper's second step of base
initialisation).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from siesta.backbones import BACKBONES
from siesta.codecs import OPQ, Raw, relative_error, shipped
from siesta.contracts import Backbone
from siesta.data import picture_files
from siesta.errors import BadInput
from siesta.images import Pixels, read_image, scaled

__all__ = ["Fitted", "fit", "fitted_for", "mean_error"]

_PICTURES = 1000
_VECTORS = 200_000
_AT_ONCE = 32


@dataclass(frozen=True)
class Fitted:
    """A codec, the mean z (D,) of base pictures, and the codec's relative error."""

    codec: OPQ | Raw
    centre: Tensor
    error: float


def fitted_for(network: Backbone, codec: str, base: Path | None, image_size: int, seed: int) -> Fitted:
    """What a network needs: from a folder of base pictures, or, where there is none, from the package."""
    pictures = None if base is None else _read_some(base, image_size, seed)
    if codec == Raw.name:
        return _raw(network, pictures)
    return _ready_made(network) if pictures is None else fit(network, pictures, seed)


def _raw(network: Backbone, pictures: Sequence[Pixels] | None) -> Fitted:
    """Raw needs no fitting; without base pictures the centre is the package's, or zero, the paper's variant."""
    codec = Raw.of(network.scaling)
    if pictures is not None:
        return Fitted(codec, _mean_feature(network, codec, pictures), 0.0)
    found = shipped(network.name, BACKBONES[network.name].default_cut)
    return Fitted(codec, found[0]["centre"] if found else torch.zeros(network.features), 0.0)


def _ready_made(network: Backbone) -> Fitted:
    """What the package ships for a backbone and cut."""
    found = shipped(network.name, network.cut)
    if found is None:
        raise BadInput(
            f"no fitted codec comes with {network.name} cut after {network.cut} layers: "
            "give a folder of pictures to fit one on (base=..., --base FOLDER)"
        )
    tensors, facts = found
    return Fitted(OPQ.from_state(tensors), tensors["centre"], float(facts["relative_error"]["unseen"]))


def _read_some(folder: Path, image_size: int, seed: int) -> list[Pixels]:
    """At most 1,000 pictures of a folder, drawn at random."""
    files = picture_files(folder)
    pictures: list[Pixels] = []
    for index in np.random.default_rng(seed).permutation(len(files)):
        with contextlib.suppress(BadInput):  # a broken file among many does no harm
            pictures.append(read_image(files[index], image_size))
        if len(pictures) == _PICTURES:
            break
    if not pictures:
        raise BadInput(f"none of the {len(files):,} picture files of {folder} can be read")
    return pictures


def fit(network: Backbone, pictures: Sequence[Pixels], seed: int) -> Fitted:
    """Fits OPQ on at most 200,000 latent vectors, as many from each picture, then takes the mean z."""
    rng = np.random.default_rng(seed)
    each = max(_VECTORS // len(pictures), 1)
    vectors: list[Tensor] = []
    for latents in _latents(network, pictures):
        flat = latents.permute(0, 2, 3, 1).flatten(1, 2)  # (B, r * s, d)
        some = rng.permutation(flat.shape[1])[:each]
        vectors.append(flat[:, some].reshape(-1, flat.shape[2]))
    codec = OPQ.fit(torch.cat(vectors), seed)
    return Fitted(codec, _mean_feature(network, codec, pictures), mean_error(network, codec, pictures))


def mean_error(network: Backbone, codec: OPQ | Raw, pictures: Sequence[Pixels]) -> float:
    """Mean relative error of a codec over pictures."""
    errors = [relative_error(codec, latents) * len(latents) for latents in _latents(network, pictures)]
    return sum(errors) / len(pictures)


@torch.inference_mode()
def _mean_feature(network: Backbone, codec: OPQ | Raw, pictures: Sequence[Pixels]) -> Tensor:
    """Mean of z over pictures, by way of the codec as ever: (D,)."""
    total = torch.zeros(network.features, dtype=torch.float64)
    for latents in _latents(network, pictures):
        channels, rows, columns = latents.shape[1:]
        again = codec.decode(codec.encode(latents), (channels, rows, columns))
        total += network.top(again).double().sum(dim=0)
    return (total / len(pictures)).float()


@torch.inference_mode()
def _latents(network: Backbone, pictures: Sequence[Pixels]) -> Iterator[Tensor]:
    for start in range(0, len(pictures), _AT_ONCE):
        yield network.bottom(scaled(pictures[start : start + _AT_ONCE], network.scaling))
