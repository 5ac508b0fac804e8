"""A folder of labelled images that judges a sleep, in place of held-out samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Input
from siesta.data import labelled_files
from siesta.errors import BadInput
from siesta.pipeline import Pipeline, batched
from siesta.rng import Purpose, generator
from siesta.sleep.held_out import HeldOutSamples
from siesta.store import Store, clean_label

__all__ = ["MOST_IMAGES", "judge_samples"]

MOST_IMAGES = 2000
"""How many images of a folder judge a sleep at most; of more, random ones."""

_BATCH_SIZE = 32


def judge_samples(folder: Path, store: Store, pipeline: Pipeline, class_ids: Ids, seed: int) -> HeldOutSamples:
    """Return the images of `folder/<label>/` as samples that are not stored; other files are left out.

    The id of an image is a hash of its bytes, so that it plays the same role in every sleep.

    Args:
        folder: The folder.
        store: The store of the learner, with the labels of its classes.
        pipeline: Encodes images.
        class_ids: The classes that the learner knows, (K,); images of others are left out.
        seed: Chooses images if there are too many.
    """
    if pipeline.input.noun != "image":
        raise BadInput(f"a judge is a folder of images, and this learner takes {pipeline.input.noun}s: leave it out")
    known = set(class_ids.tolist())
    ids = {record.label: record.id for record in store.classes.all() if record.id in known}
    files = [(file, ids[label]) for file, name in labelled_files(folder) if (label := clean_label(name)) in ids]
    order = generator(seed, Purpose.HELD_OUT_SAMPLES).permutation(len(files))[:MOST_IMAGES]
    rows = []
    for batch in batched(_readable([files[index] for index in order], pipeline.input), _BATCH_SIZE):
        numbers, classes, pixels = zip(*batch, strict=True)
        rows.append((np.array(numbers, np.int64), np.array(classes, np.int32), pipeline.encode(pixels)))
    if not rows:
        raise BadInput(f"{folder} has no image of a learned class: it should look like {folder}/<label>/<image>.jpg")
    return HeldOutSamples(*(np.concatenate(part) for part in zip(*rows, strict=True)))


def _readable(files: list[tuple[Path, int]], kind: Input) -> Iterator[tuple[int, int, npt.NDArray[Any]]]:
    """Yield id, class id and pixels of the files that are images."""
    for file, class_id in files:
        try:
            pixels = kind.read(file)
        except BadInput:
            continue
        yield int.from_bytes(hashlib.sha256(pixels.tobytes()).digest()[:8], "little", signed=True), class_id, pixels
