"""Creating a learner: a network with initial weights, a codec that fits it, and an empty store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siesta.backbones import (
    BACKBONES,
    DEFAULT_BACKBONE,
    DEFAULT_SPACE,
    MAX_IMAGE_SIZE,
    MIN_IMAGE_SIZE,
    PUBLISHED,
    VECTOR_NETWORKS,
    BackboneSpec,
    make_space,
    vector_network,
)
from siesta.backbones.cut_network import initial_network
from siesta.codecs import CODECS, DEFAULT_CODEC, VECTOR_CODEC
from siesta.contracts import Codec
from siesta.engines import choose_engine
from siesta.errors import BadInput, SiestaError
from siesta.head import FeatureStatistics, Head
from siesta.head.kinds import DEFAULT_HEAD, DISCRIMINANT, check_head
from siesta.learner.codec_options import check_codec_options
from siesta.learner.fitting import FittedCodec, base_inputs, codec_for
from siesta.pipeline import InputLike, NetworkEngines
from siesta.sleep.settings import check_seed
from siesta.store import OVERHEAD_BYTES, Store, check_new_path, parse_bytes

__all__ = ["CreateOptions", "NetworkChoice", "create_store", "removed_if_unusable", "resolve_network"]


@dataclass(frozen=True)
class NetworkChoice:
    """A network by its name, and the size of its input: side in pixels of square images, or length of vectors."""

    name: str
    input_size: int

    @property
    def takes_vectors(self) -> bool:
        """Whether its input are vectors."""
        return self.name in VECTOR_NETWORKS


def resolve_network(
    backbone: str | BackboneSpec, image_size: int | None, features: int | None, top_layers: int | None
) -> NetworkChoice:
    """Return the network that the arguments of `Siesta.create` stand for."""
    if features is None:
        if top_layers is not None:
            raise BadInput("top_layers is for a learner of vectors: give features, the length of your vectors, too")
        name = BACKBONES.name_of(backbone)
        return NetworkChoice(name, BACKBONES[name].image_size if image_size is None else image_size)
    if backbone != DEFAULT_BACKBONE or image_size is not None:
        raise BadInput("a learner of vectors has no backbone and no image size: give features only")
    return NetworkChoice(vector_network(features, top_layers), features)


@dataclass(frozen=True)
class CreateOptions:
    """The options of `Siesta.create`, where they are documented."""

    memory: str | int
    network: NetworkChoice
    cut: int | None
    given_codec: str | type[Codec] | None
    codec_options: Mapping[str, Any]
    weights: str | Path
    base: str | Path | Iterable[InputLike] | None
    space: str
    hold_out: bool
    seed: int
    head: str = DEFAULT_HEAD

    def validate(self) -> None:
        """Raise `BadInput` for values that cannot be used."""
        size = self.network.input_size
        if self.network.takes_vectors:
            if self.cut or self.weights != PUBLISHED:
                raise BadInput("a learner of vectors has no cut and no file of weights: give features only")
            if isinstance(self.base, str | Path):
                raise BadInput(f"base is {self.base}, and this learner takes vectors: give an array of them")
        elif not MIN_IMAGE_SIZE <= size <= MAX_IMAGE_SIZE:
            raise BadInput(f"image_size is {size}: give {MIN_IMAGE_SIZE} to {MAX_IMAGE_SIZE} pixels")
        check_seed(self.seed)
        check_head(self.head)
        check_codec_options(self.codec, self.codec_options)
        codec_cut = CODECS[self.codec].cut
        if codec_cut is not None and self.cut not in (None, codec_cut):
            raise BadInput(f"the codec {self.codec} only works with cut {codec_cut}: remove cut={self.cut}")

    @property
    def codec(self) -> str:
        """The name of the codec."""
        if self.given_codec is None:
            return VECTOR_CODEC if self.network.takes_vectors else DEFAULT_CODEC
        return CODECS.name_of(self.given_codec)

    @property
    def has_base_statistics(self) -> bool:
        """Whether base images are given, or statistics of base images come with the weights."""
        return self.base is not None or self.weights == PUBLISHED


@contextmanager
def removed_if_unusable(store: Store) -> Iterator[None]:
    """Remove a new store if the block, which uses it for the first time, raises: the learner was not created."""
    try:
        yield
    except SiestaError:
        store.close()
        if store.path is not None:
            shutil.rmtree(store.path, ignore_errors=True)
        raise


def create_store(folder: Path | None, options: CreateOptions, device: str, engine: str | None) -> Store:
    """Create the store of an empty learner, in a folder or, when None, in RAM; the device chooses an engine of None."""
    options.validate()
    engine = choose_engine(engine, device)
    space = make_space(options.space)
    if folder is not None:
        check_new_path(folder)
    codec = CODECS[options.codec]
    cut = options.cut if codec.cut is None else codec.cut
    chosen = options.network
    network = initial_network(
        chosen.name, cut, weights=options.weights, linear=space.linear, input_size=chosen.input_size
    )
    engines = NetworkEngines(network, device, engine)
    check_shape: Callable[..., None] = codec.check
    check_shape(engines.latent_shape, **options.codec_options)
    if codec.needs_fit and not options.has_base_statistics:
        raise BadInput(
            "a codec has to be fitted to these weights: give a folder of images to fit one on (base=..., --base FOLDER)"
        )
    fitted = _fit(engines, options)
    space_name = options.space
    top = dict(network.top)
    if space.centred:
        if fitted.centre is None or not options.has_base_statistics:
            space_name = _space_without_centre(options.space)
        else:
            top[network.centre] = fitted.centre
    settings = _settings(engines, fitted, options, space_name)
    spec = network.spec
    statistics = FeatureStatistics.empty(spec.features).arrays() if options.head == DISCRIMINANT else None
    return Store.create(
        folder,
        settings=settings,
        statistics=statistics,
        constants={"bottom": network.bottom, "codec": fitted.codec.state(), "graphs": engines.stored_graphs()},
        generation={"top": top, "head": Head.empty(spec.features, spec.defaults.scale).state()},
    )


def _fit(engines: NetworkEngines, options: CreateOptions) -> FittedCodec:
    inputs = None
    if options.base is not None:
        inputs = base_inputs(options.base, engines.input, options.seed)
    return codec_for(engines, options.codec, inputs, options.seed, options=options.codec_options)


def _settings(engines: NetworkEngines, fitted: FittedCodec, options: CreateOptions, space: str) -> dict[str, object]:
    """Return the settings that the store keeps, as JSON values."""
    network = engines.network
    code_bytes = fitted.codec.code_bytes(engines.latent_shape)
    takes_vectors = options.network.takes_vectors
    return {
        "backbone": network.name,
        "cut": network.cut,
        "weights": {"from": Path(options.weights).name, "ignored": network.ignored},
        "image_size": None if takes_vectors else network.input_size,
        "features": network.input_size if takes_vectors else None,
        "latent_shape": engines.latent_shape,
        "space": space,
        "base": options.base is not None,
        "codec": options.codec,
        "codec_error": fitted.error,
        "code_bytes": code_bytes,
        "memory_bytes": parse_bytes(options.memory, code_bytes + OVERHEAD_BYTES),
        "head": options.head,
        "held_out": options.hold_out,
        "seed": options.seed,
    }


def _space_without_centre(space: str) -> str:
    """Return the plain space in place of the default one; any other centred space needs a centre."""
    if space == DEFAULT_SPACE:
        return "plain"
    raise BadInput(f"a {space} space needs the mean of base images: give a folder of them (base=..., --base FOLDER)")
