"""Pre-training by SwAV: is the input faster than the step that eats it, and what memory does a batch of 64 take."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.measure import Row, alternate, row
from siesta.backbones import BACKBONES, RANDOM, make_backbone
from siesta.heap import freed_memory_kept
from siesta.images import opened
from siesta.pretrain.crops import DRAWS, cut_crops
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.larc import make_optimizer
from siesta.pretrain.loader import Loader
from siesta.pretrain.pictures import copied
from siesta.pretrain.swav import SwAV

__all__ = ["run"]

BACKBONE, BATCH = "mobilenet_v3_large", 64


def run(sizes: tuple[int, ...] = (96,)) -> Iterator[Row]:
    """For each image size; each in a process of its own, so that its memory is its own."""
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
    """Seconds to decode a batch from its own files and cut it, to cut it from copies, to learn from it; peak MB."""
    with tempfile.TemporaryDirectory() as folder:
        files = _photos(Path(folder))
        loader = Loader(copied(files, size, Path(folder)), np.zeros(BATCH, np.int64), SwAV.plan, size, BATCH, seed=0)
        backbone = make_backbone(BACKBONE, 0, weights=RANDOM)
        early = BACKBONES[BACKBONE].default_cut
        method = SwAV(Encoder(backbone.top, backbone.features, backbone.scaling, early)).train()
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer, views = make_optimizer(method.parts(), method.recipe), loader.views(0)
        draws = np.random.default_rng(0).random((BATCH, len(SwAV.plan), DRAWS))

        def cut() -> None:
            loader.views(0)

        def decode_and_cut() -> None:
            cut_crops([opened(file) for file in files], SwAV.plan, size, draws)

        def learn() -> None:
            optimizer.zero_grad(set_to_none=True)
            method(views, 0.5).loss.backward()
            optimizer.prepare(1e-6, 0.5)
            optimizer.step()

        with freed_memory_kept():
            decoding, cutting, learning = alternate(decode_and_cut, cut, learn, repeats=3)
    return decoding, cutting, learning, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _photos(folder: Path) -> list[Path]:
    """JPEGs of a usual size: blots of colour, some noise."""
    files, rng = [], np.random.default_rng(0)
    for number in range(BATCH):
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        picture = np.asarray(small.resize((500, 375), Image.Resampling.BICUBIC)) + rng.normal(0, 12, (375, 500, 3))
        files.append(folder / f"{number}.jpg")
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(files[-1], quality=90)
    return files
