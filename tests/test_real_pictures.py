"""The whole learner on real images, across all modules: ten classes of CUB-200, then five more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.data import labelled_files
from siesta.learner.folders import accuracies, learn_files, predict_files
from siesta.provenance import provenance

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parent.parent / "results" / "cub_ten_classes.jsonl"


def test_ten_birds_then_five_more(shared_data: Path, tmp_path: Path) -> None:
    birds = shared_data / "cub200"
    names = sorted(folder.name for folder in (birds / "train").iterdir())[::13][:15]
    old, new = set(names[:10]), set(names[10:])

    def files(part: str, some: set[str]) -> list[tuple[Path, str]]:
        return [(path, label) for path, label in labelled_files(birds / part) if label in some]

    def accuracy(some: set[str]) -> float:
        return float(accuracies(predict_files(learner, files("test", some)))["top1"])

    with Siesta.create(tmp_path / "birds.siesta") as learner:
        learned = [outcome.status for outcome in learn_files(learner, files("train", old))]
        assert set(learned) == {"learned"}
        awake = accuracy(old)
        learner.sleep(updates=3000, batch_size=32)
        slept = accuracy(old)
        list(learn_files(learner, files("train", new)))
        joined, joined_new = accuracy(old), accuracy(new)
        learner.sleep(updates=3000, batch_size=32)
        again, again_new = accuracy(old), accuracy(new)
    facts = {
        "bench": "cub_ten_classes",
        "command": "pytest -m slow tests/test_real_pictures.py",
        "config": {"classes": names, "updates": 3000, "batch": 32, "image_size": 224, "seed": 0},
        "ten_classes": {"awake": awake, "after_sleep": slept},
        "five_more": {
            "old_awake": joined,
            "new_awake": joined_new,
            "old_after_sleep": again,
            "new_after_sleep": again_new,
        },
        "old_fall_awake": round(slept - joined, 2),
        **provenance(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    assert slept > awake - 3, "of 289 images: ten classes leave a sleep little to gain"
    assert slept - joined < 10, "old classes hold while new ones arrive"
    assert again >= joined
