"""Fits the codec (and the centres of features) that comes with the package, and writes beside it how that was done.

python scripts/fit_default_codec.py --base ../shared/data/imagenet_val_1000 --unseen ../shared/data/cub200/test

With --keep-codec the codec stays as it is and only the centres are measured anew.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from safetensors.torch import save_file
from torch import Tensor

from siesta.backbones import DEFAULT_BACKBONE, make_backbone
from siesta.codecs import OPQ, shipped
from siesta.data import picture_files
from siesta.fitting import fit, measure
from siesta.images import Pixels, read_image
from siesta.learner import DEFAULT_IMAGE_SIZE
from siesta.provenance import provenance

FITTED = Path(__file__).parent.parent / "siesta" / "codecs" / "fitted"
SCRIPT = "python scripts/fit_default_codec.py"
SEED = 0
UNSEEN_PICTURES = 500


def main() -> None:
    """Fits, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="pictures to fit on")
    parser.add_argument("--unseen", type=Path, help="pictures to measure the error on")
    parser.add_argument("--keep-codec", action="store_true", help="only measure the centres")
    options = parser.parse_args()
    network = make_backbone(DEFAULT_BACKBONE)
    base = _read(picture_files(options.base))
    found = shipped(network.name, network.cut) if options.keep_codec else None
    if found is not None:
        codec, facts = OPQ.from_state(found[0]), found[1]
    elif options.unseen is None:
        parser.error("--unseen is needed to fit a codec")
    else:
        codec, facts = _fitted(base, options.base, options.unseen)
    command = f"{SCRIPT} --base {options.base} --keep-codec"
    facts["centres"] = {"command": command, "pictures": len(base), **provenance()}
    name = FITTED / f"{network.name}-{network.cut}"
    save_file({**codec.state(), **_centres(codec, base)}, name.with_suffix(".safetensors"))
    name.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    Console().print(facts)


def _fitted(pictures: list[Pixels], base: Path, unseen: Path) -> tuple[OPQ, dict[str, Any]]:
    """A new codec, and what is to be said of it."""
    network = make_backbone(DEFAULT_BACKBONE)
    fitted = fit(network, pictures, SEED)
    assert isinstance(fitted.codec, OPQ)
    others = picture_files(unseen)
    others = others[:: max(len(others) // UNSEEN_PICTURES, 1)][:UNSEEN_PICTURES]
    facts = {
        "command": f"{SCRIPT} --base {base} --unseen {unseen}",
        "backbone": network.name,
        "cut": network.cut,
        "image_size": DEFAULT_IMAGE_SIZE,
        "seed": SEED,
        "base": {"folder": base.name, "pictures": len(pictures)},
        "unseen": {"folder": "/".join(unseen.parts[-2:]), "pictures": len(others)},
        "relative_error": {
            "base": round(fitted.error, 4),
            "unseen": round(measure(network, fitted.codec, _read(others))[1], 4),
        },
        **provenance(),
    }
    return fitted.codec, facts


def _centres(codec: OPQ, pictures: list[Pixels]) -> dict[str, Tensor]:
    """The mean z (D,) after the last activation and before it."""
    networks = {
        "centre": make_backbone(DEFAULT_BACKBONE),
        "centre_linear": make_backbone(DEFAULT_BACKBONE, linear=True),
    }
    return {name: measure(network, codec, pictures)[0] for name, network in networks.items()}


def _read(files: list[Path]) -> list[Pixels]:
    return [read_image(file, DEFAULT_IMAGE_SIZE) for file in track(files, "reading")]


if __name__ == "__main__":
    main()
