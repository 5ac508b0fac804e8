"""A new learner: its network with the weights it starts from, a codec that suits it, and an empty store for both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from siesta.backbones import DEFAULT_SPACE, MAX_IMAGE_SIZE, MIN_IMAGE_SIZE, PUBLISHED, make_backbone, make_space
from siesta.codecs import CODECS, Raw
from siesta.errors import BadInput
from siesta.fitting import base_pictures, fitted_for
from siesta.head import Head
from siesta.images import ImageLike
from siesta.pipeline import graphs, running
from siesta.sleep import check_seed
from siesta.store import OVERHEAD_BYTES, Store, check_free, parse_bytes

__all__ = ["make_store"]


def make_store(
    folder: Path | None,
    *,
    memory: str | int,
    backbone: str,
    cut: int | None,
    codec: str,
    weights: str | Path,
    image_size: int,
    base: str | Path | Iterable[ImageLike] | None,
    space: str,
    hold_out: bool,
    seed: int,
    device: torch.device,
    engine: str,
) -> Store:
    """The store of a learner that knows nothing yet, in a folder or, for None, in RAM; the rest as `Siesta.create`."""
    if not MIN_IMAGE_SIZE <= image_size <= MAX_IMAGE_SIZE:
        raise BadInput(f"an image size lies in {MIN_IMAGE_SIZE}..{MAX_IMAGE_SIZE} pixels, not {image_size}")
    check_seed(seed)
    wanted = make_space(space)
    if folder is not None:
        check_free(folder)
    network = make_backbone(backbone, _cut_for(codec, cut), weights=weights, linear=wanted.linear)
    if base is None and weights != PUBLISHED and codec != Raw.name:
        raise BadInput(
            "a codec has to be fitted to these weights: "
            "give a folder of pictures to fit one on (base=..., --base FOLDER)"
        )
    pictures = None if base is None else base_pictures(base, image_size, seed)
    structures = graphs(network, image_size) if engine == "onnx" else {}
    bottom = running(engine, network.bottom, structures.get("bottom"), device)
    fitted = fitted_for(network, codec, pictures, seed, linear=wanted.linear, bottom=bottom)
    network.bottom.cpu()
    centre = fitted.centre if base is not None or weights == PUBLISHED else None
    if wanted.centred and centre is None:
        space = _uncentred(space)
    elif wanted.centred:
        network.top[-1].load_state_dict({"centre": centre})
    latent_shape = network.latent_shape(image_size)
    code_bytes = fitted.codec.code_bytes(latent_shape)
    return Store.create(
        folder,
        settings={
            "backbone": network.name,
            "cut": network.cut,
            "weights": {"from": Path(weights).name, "ignored": network.ignored},
            "image_size": image_size,
            "latent_shape": latent_shape,
            "space": space,
            "base": base is not None,
            "codec": codec,
            "codec_error": fitted.error,
            "code_bytes": code_bytes,
            "memory_bytes": parse_bytes(memory, code_bytes + OVERHEAD_BYTES),
            "held_out": hold_out,
            "seed": seed,
        },
        constant={
            "bottom": network.bottom.state_dict(),
            "codec": fitted.codec.state(),
            "graphs": structures,
        },
        generation={
            "top": network.top.state_dict(),
            "head": Head.empty(network.features, network.defaults.scale).state(),
        },
    )


def _cut_for(codec: str, cut: int | None) -> int | None:
    """Raw pictures go in below the first layer."""
    if codec not in CODECS:
        raise BadInput(f"there is no codec '{codec}': choose one of {', '.join(CODECS)}")
    if codec == Raw.name and cut:
        raise BadInput("raw pictures go in below the first layer: leave the cut out")
    return 0 if codec == Raw.name else cut


def _uncentred(space: str) -> str:
    """The space where no centre is known, as with raw pictures and weights of one's own: plain for the default."""
    if space == DEFAULT_SPACE:
        return "plain"
    raise BadInput(f"a {space} space needs the mean of base pictures: give a folder of them (base=..., --base FOLDER)")
