"""Fitting a codec on base images, the second step of the paper's base initialisation.

A new learner needs a codec and the centre of its features, the mean z over base images. Both come with the package for
the default backbone, or are fitted here. Images are streamed, and only uniform samples of bounded size are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.backbones.cut_network import CutNetwork
from siesta.codecs import CODECS, fitted_codec, relative_error
from siesta.codecs.latents import to_vectors
from siesta.contracts import Codec, Input, Latents
from siesta.data import picture_files
from siesta.errors import BadInput
from siesta.learner.reservoir import Reservoir
from siesta.pipeline import InputLike, Inputs, NetworkEngines, batched
from siesta.rng import Purpose, generator

__all__ = ["MAX_VECTORS", "FittedCodec", "base_inputs", "codec_for", "fit_codec", "measure_codec"]

MAX_VECTORS = 200_000
"""How many latent vectors a codec is fitted on."""

_MAX_IMAGES = 1000  # read from a folder, and used to measure centre and error
_BATCH_SIZE = 32


@dataclass(frozen=True)
class FittedCodec:
    """A codec and what was measured with it on base images.

    Attributes:
        codec: The codec.
        centre: Mean z, (D,); None where no base images are known.
        error: Mean relative reconstruction error; 0 for a codec without a fit where no base images are known.
    """

    codec: Codec
    centre: npt.NDArray[np.float32] | None
    error: float


def base_inputs(base: str | Path | Iterable[InputLike], kind: Input, seed: int) -> Iterator[npt.NDArray[Any]]:
    """Yield the readable base images or vectors: all of an iterable, or at most 1,000 random ones of a folder."""
    if not isinstance(base, (str, Path)):
        return _readable(base, kind, None)
    files = picture_files(Path(base))
    order = generator(seed, Purpose.CODEC_FILES).permutation(len(files))
    return _readable((files[index] for index in order), kind, _MAX_IMAGES)


def _readable(given: Iterable[InputLike], kind: Input, limit: int | None) -> Iterator[npt.NDArray[Any]]:
    count = 0
    for each in given:
        try:
            read = kind.read(each)
        except BadInput:  # a few broken files do not matter for the fit
            continue
        yield read
        count += 1
        if count == limit:
            return
    if not count:
        raise BadInput(f"none of the {kind.noun}s to fit on can be read: give others")


def codec_for(
    engines: NetworkEngines,
    codec: str,
    inputs: Iterable[npt.NDArray[Any]] | None,
    seed: int,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> FittedCodec:
    """Return a codec for a network, fitted on base images or, without any, from the package.

    Args:
        engines: Any network.
        codec: A key of `CODECS`.
        inputs: Base images or vectors, as `Input.read` returns them.
        seed: Seed of the samples and of the fit.
        options: Options of the codec.
    """
    network = engines.network
    centre_name = "centre_linear" if network.linear else "centre"  # without the last activation, the centre differs
    codec_class = CODECS[codec]
    if inputs is not None:
        return fit_codec(engines, codec_class, inputs, seed, options=options)
    if codec_class.needs_fit:
        return _packaged_codec(network, codec, options, centre_name)
    packaged = fitted_codec(network.name, network.spec.default_cut)
    centre = packaged[0][centre_name] if packaged else None
    return FittedCodec(_make_codec(network, codec_class, None, seed, options), centre, 0.0)


def _packaged_codec(network: CutNetwork, codec: str, options: Mapping[str, Any], centre_name: str) -> FittedCodec:
    packaged = fitted_codec(network.name, network.cut)
    if packaged is not None and packaged[1]["codec"] == codec:
        arrays, facts = packaged
        fitted = CODECS[codec].from_state(arrays)
        if fitted.options == {**fitted.options, **options}:
            return FittedCodec(fitted, arrays[centre_name], float(facts["relative_error"]["unseen"]))
    given = "".join(f", {name} {value}" for name, value in options.items())
    raise BadInput(
        f"no fitted codec comes with {network.name} cut after {network.cut} layers (codec {codec}{given}): "
        "give a folder of images to fit one on (base=..., --base FOLDER)"
    )


def fit_codec(
    engines: NetworkEngines,
    codec_class: type[Codec],
    inputs: Iterable[npt.NDArray[Any]],
    seed: int,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> FittedCodec:
    """Fit a codec on a uniform sample of all latent vectors of the inputs, and measure it on 1,000 of the inputs.

    Memory is bounded by 200,000 vectors and 1,000 inputs.
    """
    vectors = Reservoir(MAX_VECTORS, generator(seed, Purpose.CODEC_VECTORS))
    sample = Reservoir(_MAX_IMAGES, generator(seed, Purpose.CODEC_ERROR))
    for batch in batched(inputs, _BATCH_SIZE):
        sample.add(np.stack(batch))
        if codec_class.needs_fit:
            vectors.add(to_vectors(engines.latents(batch)))
    rows = vectors.rows() if codec_class.needs_fit else None
    codec = _make_codec(engines.network, codec_class, rows, seed, options)
    return FittedCodec(codec, *measure_codec(engines, codec, sample.rows()))


def _make_codec(
    network: CutNetwork, codec_class: type[Codec], vectors: Latents | None, seed: int, options: Mapping[str, Any]
) -> Codec:
    fit: Callable[..., Codec] = codec_class.fit
    if vectors is None:
        vectors = np.zeros((0, 0), np.float32)
    return fit(vectors, seed, network.spec.normalization, **options)


def measure_codec(
    engines: NetworkEngines, codec: Codec, inputs: Inputs | npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], float]:
    """Return the mean z (D,) of inputs after the codec, and the codec's mean relative error."""
    total = np.zeros(engines.network.spec.features)
    error = 0.0
    for batch in batched(inputs, _BATCH_SIZE):
        latents = engines.latents(batch)
        reconstructed = codec.decode(codec.encode(latents), engines.latent_shape)
        total += engines.features(reconstructed).sum(axis=0, dtype=np.float64)
        error += relative_error(codec, latents) * len(batch)
    return (total / len(inputs)).astype(np.float32), error / len(inputs)
