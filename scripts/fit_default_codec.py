"""Fits the codec (and the centre of features) that comes with the package, and writes beside it how that was done.

python scripts/fit_default_codec.py --base ../shared/data/imagenet_val_1000 --unseen ../shared/data/cub200/test
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.progress import track
from safetensors.torch import save_file

from siesta.backbones import DEFAULT_BACKBONE, make_backbone
from siesta.data import picture_files
from siesta.fitting import fit, mean_error
from siesta.images import Pixels, read_image
from siesta.learner import DEFAULT_IMAGE_SIZE
from siesta.provenance import provenance

FITTED = Path(__file__).parent.parent / "siesta" / "codecs" / "fitted"
SEED = 0
UNSEEN_PICTURES = 500


def main() -> None:
    """Fits, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="pictures to fit on")
    parser.add_argument("--unseen", type=Path, required=True, help="pictures to measure the error on")
    options = parser.parse_args()
    network = make_backbone(DEFAULT_BACKBONE)
    base, unseen = picture_files(options.base), picture_files(options.unseen)
    unseen = unseen[:: max(len(unseen) // UNSEEN_PICTURES, 1)][:UNSEEN_PICTURES]
    fitted = fit(network, _read(base), SEED)
    facts = {
        "command": f"python scripts/fit_default_codec.py --base {options.base} --unseen {options.unseen}",
        "backbone": network.name,
        "cut": network.cut,
        "image_size": DEFAULT_IMAGE_SIZE,
        "seed": SEED,
        "base": {"folder": options.base.name, "pictures": len(base)},
        "unseen": {"folder": "/".join(options.unseen.parts[-2:]), "pictures": len(unseen)},
        "relative_error": {
            "base": round(fitted.error, 4),
            "unseen": round(mean_error(network, fitted.codec, _read(unseen)), 4),
        },
        **provenance(),
    }
    name = FITTED / f"{network.name}-{network.cut}"
    save_file({**fitted.codec.state(), "centre": fitted.centre}, name.with_suffix(".safetensors"))
    name.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    Console().print(facts)


def _read(files: list[Path]) -> list[Pixels]:
    return [read_image(file, DEFAULT_IMAGE_SIZE) for file in track(files, "reading")]


if __name__ == "__main__":
    main()
