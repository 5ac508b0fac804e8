"""Pre-training with SwAV: speed of the input relative to the training step, and peak memory for a batch of 64."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.measure import Row, alternate, row
from siesta.backbones import BACKBONES, RANDOM, make_backbone
from siesta.backbones.layers import channels_last
from siesta.malloc import keep_freed_memory
from siesta.pretrain.crops import DRAWS_PER_CROP, cut_crops
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import CropLoader
from siesta.pretrain.picture_cache import cache_pictures
from siesta.pretrain.swav import SwAV

__all__ = ["run"]

BACKBONE, BATCH = "mobilenet_v3_large", 64


def run(sizes: tuple[int, ...] = (96,)) -> Iterator[Row]:
    """Yield rows for each image size, measured in a process of its own so that peak memory is separate."""
    for size in sizes:
        config: dict[str, Any] = {"backbone": BACKBONE, "image_size": size, "batch": BATCH}
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            decoding, cutting, learning, peak = pool.apply(_measured, (size,))
        yield row("pretrain_input", BATCH / cutting, "pictures/s", **config)
        yield row("pretrain_step", BATCH / learning, "pictures/s", **config)
        yield row("pretrain_input_over_step", learning / cutting, "x", ">= 1", **config)
        yield row("pretrain_copies_over_files", decoding / cutting, "x", "> 1", **config)
        yield row("pretrain_memory", peak, "MB", **config)


def _measured(size: int) -> tuple[float, float, float, float]:
    """Return the seconds to crop a batch from its files, to crop it from copies and to train on it, and the peak MB."""
    with tempfile.TemporaryDirectory() as folder:
        files = _photos(Path(folder))
        loader = CropLoader(
            cache_pictures(files, size, Path(folder)), np.zeros(BATCH, np.int64), SwAV.crop_specs, size, BATCH, seed=0
        )
        backbone = make_backbone(BACKBONE, 0, weights=RANDOM)
        early = BACKBONES[BACKBONE].default_cut
        encoder = Encoder(backbone.top, backbone.features, backbone.normalization, early)
        method = channels_last(SwAV(encoder)).train()
        optimizer, views = make_optimizer(method.param_groups(), method.recipe), loader.batch(0)
        draws = np.random.default_rng(0).random((BATCH, len(SwAV.crop_specs), DRAWS_PER_CROP))

        def cut() -> None:
            loader.batch(0)

        def decode_and_cut() -> None:
            cut_crops([Image.open(file).convert("RGB") for file in files], SwAV.crop_specs, size, draws)

        def learn() -> None:
            optimizer.zero_grad(set_to_none=True)
            method(views, 0.5).loss.backward()
            optimizer.prepare(1e-6, 0.5)
            optimizer.step()

        with keep_freed_memory():
            decoding, cutting, learning = alternate(decode_and_cut, cut, learn, repeats=3)
    return decoding, cutting, learning, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _photos(folder: Path) -> list[Path]:
    """Write JPEG files of a usual size, with coloured areas and some noise."""
    files, rng = [], np.random.default_rng(0)
    for number in range(BATCH):
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        picture = np.asarray(small.resize((500, 375), Image.Resampling.BICUBIC)) + rng.normal(0, 12, (375, 500, 3))
        files.append(folder / f"{number}.jpg")
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(files[-1], quality=90)
    return files
