"""Creating a learner: a network with initial weights, a codec that fits it, and an empty store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from siesta.backbones import DEFAULT_SPACE, make_space
from siesta.backbones.cut_network import initial_network
from siesta.codecs import CODECS
from siesta.engines import choose_engine
from siesta.errors import BadInput, SiestaError
from siesta.head import FeatureStatistics, Head
from siesta.head.kinds import DISCRIMINANT
from siesta.learner.create_options import CreateOptions
from siesta.learner.fitting import FittedCodec, base_inputs, codec_for
from siesta.pipeline import NetworkEngines
from siesta.store import OVERHEAD_BYTES, Store, check_new_path, parse_bytes

__all__ = ["create_store", "removed_if_unusable"]


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
    codec = CODECS[options.codec_name]
    cut = options.cut if codec.cut is None else codec.cut
    network = initial_network(
        options.network, cut, weights=options.weights, linear=space.linear, input_size=options.input_size
    )
    engines = NetworkEngines(network, device, engine)
    check_shape: Callable[..., None] = codec.check
    check_shape(engines.latent_shape, **options.given_codec_options)
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
    return codec_for(engines, options.codec_name, inputs, options.seed, options=options.given_codec_options)


def _settings(engines: NetworkEngines, fitted: FittedCodec, options: CreateOptions, space: str) -> dict[str, object]:
    """Return the settings that the store keeps, as JSON values."""
    network = engines.network
    code_bytes = fitted.codec.code_bytes(engines.latent_shape)
    return {
        "backbone": network.name,
        "cut": network.cut,
        "weights": {"from": Path(options.weights).name, "ignored": network.ignored},
        "image_size": network.input_size if options.features is None else None,
        "features": options.features,
        "latent_shape": engines.latent_shape,
        "space": space,
        "base": options.base is not None,
        "codec": options.codec_name,
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
