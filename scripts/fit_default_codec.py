"""Fit the codec and the feature centres of a backbone for the package, and store beside them how they were fitted.

python scripts/fit_default_codec.py --base ../shared/data/imagenet_val_1000 --unseen ../shared/data/cub200/test

With --keep-codec only the centres are measured again; --backbone names another backbone than the default one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from safetensors.numpy import save_file

from siesta.backbones import BACKBONES, DEFAULT_BACKBONE, PUBLISHED
from siesta.backbones.cut_network import CutNetwork, initial_network
from siesta.codecs import CODECS, DEFAULT_CODEC, fitted_codec
from siesta.contracts import Codec
from siesta.data import picture_files
from siesta.images import Pixels, read_image
from siesta.learner.fitting import fit_codec, measure_codec
from siesta.pipeline import NetworkEngines
from siesta.provenance import provenance

FITTED = Path(__file__).parent.parent / "siesta" / "codecs" / "fitted"
SCRIPT = "python scripts/fit_default_codec.py"
SEED = 0
UNSEEN_PICTURES = 500


def main() -> None:
    """Fit, measure and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default=DEFAULT_BACKBONE, help="whose published weights are used")
    parser.add_argument("--base", type=Path, required=True, help="images to fit on")
    parser.add_argument("--unseen", type=Path, help="images to measure the error on")
    parser.add_argument("--keep-codec", action="store_true", help="only measure the centres")
    options = parser.parse_args()
    engines = _engines(options.backbone)
    network = engines.network
    base = _read(picture_files(options.base), network)
    found = fitted_codec(network.name, network.cut) if options.keep_codec else None
    if found is not None:
        codec, facts = CODECS[DEFAULT_CODEC].from_state(found[0]), found[1]
    elif options.unseen is None:
        parser.error("--unseen is needed to fit a codec")
    else:
        codec, facts = _fitted(engines, base, options.base, options.unseen)
    command = f"{SCRIPT} --backbone {network.name} --base {options.base} --keep-codec"
    facts["centres"] = {"command": command, "pictures": len(base), **provenance()}
    name = FITTED / f"{network.name}-{network.cut}"
    save_file({**codec.state(), **_centres(network.name, codec, base)}, name.with_suffix(".safetensors"))
    name.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    Console().print(facts)


def _fitted(engines: NetworkEngines, pictures: list[Pixels], base: Path, unseen: Path) -> tuple[Codec, dict[str, Any]]:
    """Return a new codec and a description of how it was fitted."""
    network = engines.network
    fitted = fit_codec(engines, CODECS[DEFAULT_CODEC], pictures, SEED)
    others = picture_files(unseen)
    others = others[:: max(len(others) // UNSEEN_PICTURES, 1)][:UNSEEN_PICTURES]
    facts = {
        "command": f"{SCRIPT} --backbone {network.name} --base {base} --unseen {unseen}",
        "codec": DEFAULT_CODEC,
        "backbone": network.name,
        "cut": network.cut,
        "image_size": BACKBONES[network.name].image_size,
        "seed": SEED,
        "base": {"folder": base.name, "pictures": len(pictures)},
        "unseen": {"folder": "/".join(unseen.parts[-2:]), "pictures": len(others)},
        "relative_error": {
            "base": round(fitted.error, 4),
            "unseen": round(measure_codec(engines, fitted.codec, _read(others, network))[1], 4),
        },
        **provenance(),
    }
    return fitted.codec, facts


def _centres(backbone: str, codec: Codec, pictures: list[Pixels]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the mean z (D,) after the last activation and before it."""
    variants = {"centre": _engines(backbone), "centre_linear": _engines(backbone, linear=True)}
    return {name: measure_codec(engines, codec, pictures)[0] for name, engines in variants.items()}


def _engines(backbone: str, *, linear: bool = False) -> NetworkEngines:
    """Return the network with the engines that learners run it with."""
    size = BACKBONES[backbone].image_size
    return NetworkEngines(initial_network(backbone, None, weights=PUBLISHED, linear=linear, input_size=size))


def _read(files: list[Path], network: CutNetwork) -> list[Pixels]:
    size = BACKBONES[network.name].image_size
    return [read_image(file, size) for file in track(files, "reading")]


if __name__ == "__main__":
    main()
