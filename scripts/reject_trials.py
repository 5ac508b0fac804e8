"""Reject wrong answers and ask again: what it does to near-duplicates, and what it costs other images.

    python -m scripts.reject_trials CUB_200_2011 [--updates 3600]

Half of the drawn training images of some classes are taught, the others are asked about. Wrong answers are rejected.
Then near-duplicates of their images (another crop, a small rotation, another brightness: the next frames of a camera)
and the images that were answered rightly are asked about again. Test images are not used. Rows of later runs replace
earlier ones with the same head and stage.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance
from rich.console import Console

from siesta import Siesta
from siesta.contracts import Prediction
from siesta.head.kinds import HEADS
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
_CLASSES = 60
_EACH = 15  # images of a class that are taught, and as many that are asked about
_REJECTED = 200  # wrong answers at most
_NEAR = 3  # near-duplicates of an image
Labelled = list[tuple[Path, str]]


def main() -> None:
    """Write a row for each head awake, and for the default one slept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train/<class>/*")
    parser.add_argument("--updates", type=int, default=0, help="of a sleep after teaching; 0 for none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studies" / "reject.jsonl")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    taught, asked = _draw(arguments.data, rng)
    config = {"dataset": arguments.data.name, "classes": _CLASSES, "updates": arguments.updates, "seed": arguments.seed}
    for head in HEADS if not arguments.updates else ["discriminant"]:
        learner = Siesta.create(":memory:", memory="64MB", head=head, hold_out=False)
        learner.learn_many((image for image, _ in taught), (label for _, label in taught))
        if arguments.updates:
            learner.sleep(updates=arguments.updates)
        row = {"bench": "reject_trials", "head": head, "stage": "slept" if arguments.updates else "awake"}
        row |= _trial(learner, asked, rng)
        _write(arguments.out, {**row, "config": config, **provenance()})
        Console().print(row)


def _draw(data: Path, rng: np.random.Generator) -> tuple[Labelled, Labelled]:
    """Return the images that are taught and those that are asked about, with their labels."""
    taught: Labelled = []
    asked: Labelled = []
    folders = sorted((data / "train").iterdir())
    for folder in folders[:: len(folders) // _CLASSES][:_CLASSES]:
        files = sorted(folder.iterdir())
        for place, index in enumerate(rng.permutation(len(files))[: 2 * _EACH].tolist()):
            (taught if place < _EACH else asked).append((files[index], folder.name))
    return taught, asked


def _trial(learner: Siesta, asked: Labelled, rng: np.random.Generator) -> dict[str, Any]:
    """Reject wrong answers, and count what is answered before and after."""
    codes = learner.encode(image for image, _ in asked)
    first = learner.predict_encoded(codes, top=_CLASSES)
    right = np.array([answer.label == label for answer, (_, label) in zip(first, asked, strict=True)])
    wrong = [
        (image, label, answer.label)
        for (image, label), answer in zip(asked, first, strict=True)
        if answer.label != label
    ]
    wrong = wrong[:_REJECTED]
    near = learner.encode(copy for image, _, _ in wrong for copy in _near_duplicates(image, rng))
    rejected = [label for _, _, label in wrong for _ in range(_NEAR)]
    truth = [label for _, label, _ in wrong for _ in range(_NEAR)]
    others = [label for (_, label), is_right in zip(asked, right, strict=True) if is_right]
    before = learner.predict_encoded(near, top=_CLASSES)
    for image, _, label in wrong:
        learner.reject(image, label)
    after = learner.predict_encoded(near, top=_CLASSES)
    again = learner.predict_encoded(codes[right], top=_CLASSES)
    return {
        "rejected": len(wrong),
        "near": len(truth),
        "near_same_label": [_share(before, rejected), _share(after, rejected)],
        "near_right": [_share(before, truth), _share(after, truth)],
        "others": len(others),
        "others_right": [100.0, _share(again, others)],
        "others_score": [_score(first, others, right), _score(again, others)],
    }


def _near_duplicates(file: Path, rng: np.random.Generator) -> Iterator[Image.Image]:
    with Image.open(file) as opened:
        image = opened.convert("RGB")
    for _ in range(_NEAR):
        share = rng.uniform(0.88, 0.98)
        width, height = (round(share * side) for side in image.size)
        x, y = (int(rng.integers(whole - part + 1)) for whole, part in zip(image.size, (width, height), strict=True))
        crop = image.crop((x, y, x + width, y + height)).rotate(rng.uniform(-4, 4), Image.Resampling.BILINEAR)
        yield ImageEnhance.Brightness(crop).enhance(rng.uniform(0.85, 1.15))


def _share(answers: list[Prediction], labels: list[str]) -> float:
    """Return the percentage of answers that are these labels."""
    return round(
        100 * float(np.mean([answer.label == label for answer, label in zip(answers, labels, strict=True)])), 2
    )


def _score(answers: list[Prediction], labels: list[str], which: Any = None) -> float:
    """Return the mean score of these labels in percent, of answers that are all or those at `which`."""
    chosen = answers if which is None else [answer for answer, taken in zip(answers, which, strict=True) if taken]
    return round(
        100 * float(np.mean([dict(answer.top)[label] for answer, label in zip(chosen, labels, strict=True)])), 2
    )


def _write(file: Path, row: dict[str, Any]) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rows = [old for old in rows if (old["head"], old["stage"]) != (row["head"], row["stage"])]
    file.write_text("".join(json.dumps(each) + "\n" for each in [*rows, row]))


if __name__ == "__main__":
    main()
