"""Teaches half of the classes of CUB-200, asks about all, and writes results/unknown.jsonl.

    python -m scripts.unknown_results CUB_200_2011

The folder is the data set as it comes, or FOLDER/{train,test}/<class>/*.jpg.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

from siesta import Siesta
from siesta.data import Dataset, Split, load_dataset
from siesta.folders import ask, rejections, teach
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
ERROR_RATES = (0.3, 0.2, 0.1, 0.05)
IMAGE_SIZE, UPDATES, BATCH_SIZE = 224, 4800, 32


def main() -> None:
    """One row for each error rate that was wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    birds = load_dataset("cub200", parser.parse_args().folder)
    lessons, questions = _files(birds, birds.train), _files(birds, birds.test)
    taught = set(birds.classes[::2])
    with Siesta.create(":memory:", image_size=IMAGE_SIZE) as learner:
        for _ in teach(learner, (lesson for lesson in lessons if lesson[1] in taught)):
            pass
        report = learner.sleep(updates=UPDATES, batch_size=BATCH_SIZE)
        answers, rows = list(ask(learner, questions)), []
        for wanted in ERROR_RATES:
            threshold = learner.threshold(wanted)
            found = rejections(answers, taught, threshold)
            rows.append({"error_rate": wanted, "threshold": threshold, **found})
            Console().print(rows[-1])
    config = {"classes": len(taught), "image_size": IMAGE_SIZE, "updates": UPDATES, "batch": BATCH_SIZE, "seed": 0}
    about = {"bench": "unknown", "config": config, "held_out": report.held_out, **provenance()}
    lines = (json.dumps({**row, **about}) + "\n" for row in rows)
    (ROOT / "results" / "unknown.jsonl").write_text("".join(lines), encoding="utf-8")


def _files(birds: Dataset, split: Split) -> list[tuple[Path, str]]:
    """Pictures with the names of their classes."""
    names = (birds.classes[label] for label in split.labels.tolist())
    return [(Path(str(picture)), name) for picture, name in zip(split.pictures, names, strict=True)]


if __name__ == "__main__":
    main()
