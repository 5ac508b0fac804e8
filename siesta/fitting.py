"""What a new learner needs from base pictures before it can learn: a codec, and the centre of its features.

They come with the package for the default backbone, or are fitted on pictures (the paper's second step of base
initialisation). Pictures stream past: what is kept of them is a uniform sample of stated size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta.backbones import BACKBONES
from siesta.codecs import OPQ, Raw, relative_error, shipped
from siesta.contracts import Backbone, Engine
from siesta.data import picture_files
from siesta.engines import TorchEngine
from siesta.errors import BadInput
from siesta.images import ImageLike, Pixels, read_image, scaled
from siesta.pipeline import groups

__all__ = ["VECTORS", "Fitted", "Reservoir", "base_pictures", "fit", "fitted_for", "measure"]

VECTORS = 200_000
"""Latent vectors that a codec is fitted on."""

_PICTURES = 1000  # that are read of a folder to make a learner, and that centre and error are measured on
_AT_ONCE = 32


class Reservoir:
    """A uniform sample, without repeats, of at most `size` rows of a stream; how the stream is cut does not matter.

    Row t, counted from 0, goes to a place drawn from 0..t and is kept if that is below `size` (Vitter's algorithm R,
    many rows at a time). As long as all rows fit, all are there, in order.

    Example:
        >>> reservoir = Reservoir(size=3, seed=0)
        >>> reservoir.add(np.arange(2))
        >>> reservoir.rows()
        array([0, 1])
        >>> reservoir.add(np.arange(2, 100))
        >>> len(reservoir.rows())
        3
    """

    def __init__(self, size: int, seed: int | tuple[int, ...]) -> None:
        self._size, self._seen = size, 0
        self._random = np.random.default_rng(seed)
        self._rows: npt.NDArray[Any] = np.zeros(0)

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Shows it the next rows of the stream, (N, ...)."""
        if not self._seen:
            self._rows = np.empty((0, *rows.shape[1:]), rows.dtype)
        turns = np.arange(self._seen, self._seen + len(rows))
        drawn = (self._random.random(len(rows)) * (turns + 1)).astype(np.int64)
        places = np.where(turns < self._size, turns, drawn)
        kept = places < self._size
        self._seen += len(rows)
        self._grow(min(self._seen, self._size))
        self._rows[places[kept]] = rows[kept]  # where two go to one place the later stays

    def _grow(self, needed: int) -> None:
        if needed > len(self._rows):
            larger = np.empty(
                (min(max(needed, 2 * len(self._rows)), self._size), *self._rows.shape[1:]), self._rows.dtype
            )
            larger[: len(self._rows)] = self._rows
            self._rows = larger

    def rows(self) -> npt.NDArray[Any]:
        """The sample so far, (at most size, ...)."""
        return self._rows[: self._seen]


@dataclass(frozen=True)
class Fitted:
    """A codec, the mean z (D,) of base pictures where some are known, and the codec's relative error."""

    codec: OPQ | Raw
    centre: Tensor | None
    error: float


def base_pictures(base: str | Path | Iterable[ImageLike], image_size: int, seed: int) -> Iterator[Pixels]:
    """Pictures to fit on, those that cannot be read left out: at most 1,000 of a folder, at random, or all given."""
    if not isinstance(base, (str, Path)):
        return _readable(base, image_size, None)
    files = picture_files(Path(base))
    order = np.random.default_rng(seed).permutation(len(files))
    return _readable((files[index] for index in order), image_size, _PICTURES)


def _readable(images: Iterable[ImageLike], image_size: int, most: int | None) -> Iterator[Pixels]:
    count = 0
    for image in images:
        try:
            pixels = read_image(image, image_size)
        except BadInput:  # a broken file among many does no harm
            continue
        yield pixels
        count += 1
        if count == most:
            return
    if not count:
        raise BadInput("none of the pictures to fit on can be read: give others")


def fitted_for(
    network: Backbone,
    codec: str,
    pictures: Iterable[Pixels] | None,
    seed: int,
    *,
    linear: bool = False,
    bottom: Engine | None = None,
) -> Fitted:
    """What a network needs: from base pictures, or, where there are none, from the package.

    Args:
        network: Any backbone.
        codec: A key of `CODECS`.
        pictures: (S, S, 3) each.
        seed: Of the samples taken and of the codec.
        linear: Whether the network was made without its last activation: that has a centre of its own.
        bottom: What runs the network's bottom; torch when None.
    """
    centre = "centre_linear" if linear else "centre"
    if codec == Raw.name:
        return _raw(network, pictures, centre, seed)
    return _ready_made(network, centre) if pictures is None else fit(network, pictures, seed, bottom)


def _raw(network: Backbone, pictures: Iterable[Pixels] | None, centre: str, seed: int) -> Fitted:
    """Raw needs no fitting; without base pictures the centre is the package's, if it has one."""
    codec = Raw.of(network.scaling)
    if pictures is None:
        found = shipped(network.name, BACKBONES[network.name].default_cut)
        return Fitted(codec, found[0][centre] if found else None, 0.0)
    some = Reservoir(_PICTURES, (seed, 1))
    for group in groups(pictures, _AT_ONCE):
        some.add(np.stack(group))
    return Fitted(codec, measure(network, codec, some.rows())[0], 0.0)


def _ready_made(network: Backbone, centre: str) -> Fitted:
    """What the package ships for a backbone and cut."""
    found = shipped(network.name, network.cut)
    if found is None:
        raise BadInput(
            f"no fitted codec comes with {network.name} cut after {network.cut} layers: "
            "give a folder of pictures to fit one on (base=..., --base FOLDER)"
        )
    tensors, facts = found
    return Fitted(OPQ.from_state(tensors), tensors[centre], float(facts["relative_error"]["unseen"]))


def fit(network: Backbone, pictures: Iterable[Pixels], seed: int, bottom: Engine | None = None) -> Fitted:
    """Fits OPQ on a uniform sample of all latent vectors of the pictures; centre and error are those of 1,000 of them.

    Memory is bounded, however many pictures there are: 200,000 vectors and 1,000 pictures.
    """
    vectors, some = Reservoir(VECTORS, (seed, 0)), Reservoir(_PICTURES, (seed, 1))
    for group in groups(pictures, _AT_ONCE):
        some.add(np.stack(group))
        latents = _latents(network, group, bottom)
        vectors.add(latents.permute(0, 2, 3, 1).flatten(0, 2).numpy())
    codec = OPQ.fit(torch.from_numpy(vectors.rows()), seed)
    return Fitted(codec, *measure(network, codec, some.rows(), bottom))


def measure(
    network: Backbone, codec: OPQ | Raw, pictures: Sequence[Pixels] | Pixels, bottom: Engine | None = None
) -> tuple[Tensor, float]:
    """Mean z (D,) of pictures, by way of the codec as ever, and the codec's mean relative error over them."""
    total, error = torch.zeros(network.features, dtype=torch.float64), 0.0
    for group in groups(pictures, _AT_ONCE):
        latents = _latents(network, group, bottom)
        channels, rows, columns = latents.shape[1:]
        again = codec.decode(codec.encode(latents), (channels, rows, columns))
        with torch.inference_mode():
            total += network.top(again).double().sum(dim=0)
        error += relative_error(codec, latents) * len(group)
    return (total / len(pictures)).float(), error / len(pictures)


def _latents(network: Backbone, pictures: Sequence[Pixels], bottom: Engine | None) -> Tensor:
    """Pictures -> (B, d, r, s) on the CPU."""
    engine = bottom or TorchEngine(network.bottom, torch.device("cpu"))
    return engine.run(scaled(pictures, network.scaling)).cpu()
