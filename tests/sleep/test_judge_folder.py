"""A folder of labelled images that judges a sleep in place of held-out samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from siesta import BadInput, Siesta, SleepOptions
from siesta.sleep.judge_folder import judge_samples
from tests.learner.colours import labelled_pictures, picture
from tests.stores import store_of


@pytest.fixture(scope="module")
def learner() -> Iterator[Siesta]:
    with Siesta.create(":memory:", image_size=32) as made:
        made.learn_many(*labelled_pictures(5))
        yield made


def write_folder(folder: Path, each: int, labels: tuple[str, ...] = ("red", "green", "blue")) -> Path:
    for label in labels:
        (folder / label).mkdir(parents=True)
        for number in range(each):
            Image.fromarray(picture(label, 1000 + number)).save(folder / label / f"{number}.png")
    return folder


def test_images_of_learned_classes_are_the_samples(learner: Siesta, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "test", 3, ("red", "grey"))
    (folder / "red" / "notes.txt").write_text("no image")
    store, known = store_of(learner), learner.head.class_ids
    found = judge_samples(folder, store, learner.pipeline, known, seed=0)
    (red,) = [record.id for record in learner.classes() if record.label == "red"]
    assert found.classes.tolist() == [red] * 3 and found.codes is not None
    expected = learner.encode(sorted((folder / "red").glob("*.png")))
    assert sorted(found.codes.tolist()) == sorted(expected.tolist())
    again = judge_samples(folder, store, learner.pipeline, known, seed=1)
    assert sorted(again.ids.tolist()) == sorted(found.ids.tolist()) and len(set(found.ids.tolist())) == 3
    confidence, measured = found.measure(store, learner.pipeline, learner.head)
    assert confidence.samples == len(measured.ids) == 3
    with pytest.raises(BadInput, match="has no image of a learned class"):
        judge_samples(write_folder(tmp_path / "other", 1, ("grey",)), store, learner.pipeline, known, seed=0)


def test_a_folder_takes_the_place_of_held_out_samples(learner: Siesta, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "test", 40)
    assert learner.sleep(updates=4, batch_size=4).judge is None
    report = learner.sleep(updates=4, batch_size=4, judge=folder)
    assert report.judge == "test" and not report.optimistic and report.confidence["independent"]
    assert 40 < report.held_out < 80, "about half of them measure, the others decide"
    assert f"on {report.held_out} images of the folder 'test'" in report.summary()
    assert report.accuracy_after is not None and learner.threshold(0.2) >= 0
    files = sorted(folder.rglob("*.png"))
    answers = learner.predict_many(files)
    right = [answer for file, answer in zip(files, answers, strict=True) if answer.label == file.parent.name]
    assert 0.8 < np.mean([answer.familiarity >= 0.5 for answer in right]) < 1
    odd = learner.predict_one(np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8))
    assert odd.familiarity < np.median([answer.familiarity for answer in right])
    assert [answer.known for answer in learner.predict_many(files, threshold=0.5)] == [
        answer.familiarity >= 0.5 for answer in answers
    ]
    refused = learner.sleep(updates=4, batch_size=4, judge=folder, tolerance=-1)
    assert not refused.used, "it decides whether weights are used"
    rounds = learner.sleep(batch_size=16, judge=folder)
    assert rounds.ended in ("no_gain", "ceiling"), "it decides when a sleep ends"
    with pytest.raises(BadInput, match="is not a folder"):
        learner.sleep(updates=4, judge=tmp_path / "none")


def test_another_process_gets_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = SleepOptions(updates=1, judge=Path("photos")).to_json()
    assert json.loads(written) == {"updates": 1, "judge": str(tmp_path.resolve() / "photos")}
    assert SleepOptions.from_json(written).judge == str(tmp_path.resolve() / "photos")


def test_too_many_images_are_chosen_from_at_random(
    learner: Siesta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siesta.sleep.judge_folder.MOST_IMAGES", 5)
    folder = write_folder(tmp_path / "test", 5)
    known = learner.head.class_ids
    first, other = (judge_samples(folder, store_of(learner), learner.pipeline, known, seed) for seed in (0, 1))
    assert len(first.ids) == len(other.ids) == 5 and not np.array_equal(np.sort(first.ids), np.sort(other.ids))
