"""Sleep in rounds of several lengths; write a row for each round to results/studies/sleep_rounds.jsonl.

    python -m scripts.sleep_rounds CUB_200_2011 [--seeds 0 1] [--situations first second few]

Only training images of CUB-200 are used. Some of each class are taught; some are held out to decide when a sleep would
end (`judges`); eight others measure the accuracy (`validation`). A plan lists the lengths of the rounds, in passes over
the stored samples; each round is a sleep of its own that starts from the weights of the one before. A row says for each
image of `judges` whether it was classified correctly, so that rules for the end of a sleep, also with fewer images, can
be compared without training again.

Situations: in `first` all classes are new; in `second` half of the classes have taken part in a sleep before; in `few`
there are few classes with few images each.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from siesta import Siesta
from siesta.contracts import Codes
from siesta.data import load_dataset
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
FILE = ROOT / "results" / "studies" / "sleep_rounds.jsonl"
IMAGE_SIZE = 80
JUDGES = 5  # images of each class that decide when a sleep would end
VALIDATION = 8  # images of each class that measure the accuracy
FIRST_SLEEP = 8  # passes of the sleep over the first half of the classes of `second`
PLANS: dict[str, tuple[int, ...]] = {
    "2": (2,) * 8,
    "doubled": (1, 1, 2, 4, 8),
    "4": (4,) * 4,
    "one of 16": (16,),
    "1": (1,) * 12,
}


@dataclass(frozen=True)
class Situation:
    """What is taught before the rounds.

    Attributes:
        classes: Number of classes.
        taught: Number of images of each class.
        slept: Number of classes that have taken part in a sleep before.
    """

    classes: int
    taught: int
    slept: int = 0


SITUATIONS = {
    "first": Situation(16, 16),
    "second": Situation(16, 16, slept=8),
    "few": Situation(6, 8),
}


@dataclass(frozen=True)
class Pictures:
    """Encoded images with their labels."""

    codes: Codes
    labels: list[str]

    def right(self, learner: Siesta) -> npt.NDArray[np.bool_]:
        """Return which images the learner labels correctly, (N,)."""
        predictions = learner.predict_encoded(self.codes, top=1)
        return np.array([prediction.label == label for prediction, label in zip(predictions, self.labels, strict=True)])


@dataclass(frozen=True)
class Parts:
    """The images of one trial.

    Attributes:
        taught: Images to teach: those of the classes that take part in a sleep before, and those of the others.
        judges: Images that decide when a sleep would end.
        validation: Images that measure the accuracy.
    """

    taught: list[Pictures]
    judges: Pictures
    validation: Pictures


def main() -> None:
    """Write the rows of all trials; a trial that is in the file already is not repeated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--situations", choices=SITUATIONS, nargs="+", default=list(SITUATIONS))
    options = parser.parse_args()
    lines = FILE.read_text("utf-8").splitlines() if FILE.exists() else []
    done = {(row["situation"], row["plan"], row["seed"]) for row in map(json.loads, lines)}
    for seed in options.seeds:
        for name in options.situations:
            situation = SITUATIONS[name]
            todo = [plan for plan in PLANS if (name, plan, seed) not in done]
            if not todo:
                continue
            parts = encoded(options.folder, situation, seed)
            for plan in todo:
                rows = list(trial(parts, PLANS[plan], seed))
                config = {"image_size": IMAGE_SIZE, "judges": JUDGES, "plan": PLANS[plan], **asdict(situation)}
                shared = {"bench": "sleep_rounds", "config": config, "situation": name, "plan": plan, "seed": seed}
                with FILE.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps({**row, **shared, **provenance()}) + "\n" for row in rows)
                values = " ".join(f"{100 * row['validation']:.1f}" for row in rows)
                Console().print(f"{name} {plan} seed {seed}: {values}", highlight=False)


def encoded(folder: Path, situation: Situation, seed: int) -> Parts:
    """Return the images of one situation; the seed chooses its classes."""
    birds = load_dataset("cub200", folder)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(birds.classes), situation.classes, replace=False)
    groups: dict[str, list[tuple[str, str]]] = {"old": [], "new": [], "judges": [], "validation": []}
    for place, label in enumerate(chosen.tolist()):
        files = rng.permutation(
            [str(birds.train.pictures[at]) for at in np.flatnonzero(birds.train.labels == label).tolist()]
        )
        name = birds.classes[label]
        ends = np.cumsum([JUDGES, VALIDATION, situation.taught])
        taught = "old" if place < situation.slept else "new"
        for part, chunk in zip(("judges", "validation", taught), np.split(files, ends), strict=False):
            groups[part] += [(file, name) for file in chunk.tolist()]
    with Siesta.create(":memory:", image_size=IMAGE_SIZE) as learner:
        made = {
            part: Pictures(learner.encode([file for file, _ in files]), [label for _, label in files])
            for part, files in groups.items()
        }
    return Parts([made["old"], made["new"]], made["judges"], made["validation"])


def trial(parts: Parts, plan: tuple[int, ...], seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for the learner before the first round, and one for each round."""
    with Siesta.create(":memory:", image_size=IMAGE_SIZE, hold_out=False, seed=seed) as learner:
        stored = 0
        for pictures in parts.taught:
            if stored:
                learner.sleep(updates=FIRST_SLEEP * stored)
            if pictures.labels:
                learner.learn_encoded(pictures.codes, pictures.labels)
            stored += len(pictures.labels)
        updates, seconds = 0, 0.0
        for number, passes in enumerate((0, *plan)):
            start = time.monotonic()
            if passes:
                updates += learner.sleep(updates=passes * stored).updates
            seconds += time.monotonic() - start
            yield {
                "round": number,
                "passes": updates / stored,
                "updates": updates,
                "seconds": round(seconds, 1),
                "stored": stored,
                "validation": float(parts.validation.right(learner).mean()),
                "validation_samples": len(parts.validation.labels),
                "judges": "".join("01"[right] for right in parts.judges.right(learner).astype(int)),
            }


if __name__ == "__main__":
    main()
