from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.codecs import OPQ
from siesta.errors import BadInput
from siesta.learner.refit import refit
from siesta.learner.sources import learn_sources
from siesta.learner.vector_files import labelled_sources, unlabelled_inputs
from tests.conftest import MakePictures


def normal(count: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.savez(tmp_path / "x.npz", vectors=normal(300, 0), labels=np.arange(300) % 3)
    return tmp_path / "x.npz"


@pytest.fixture
def learner() -> Siesta:
    return Siesta.create(":memory:", features=8, codec="opq", base=normal(300, 1))


def test_rows_are_named_and_learned_once(learner: Siesta, file: Path) -> None:
    sources = labelled_sources(learner, file, None)
    assert str(sources[7].path) == f"{file}[7]" and sources[7].label == "1" and len(sources) == 300
    assert {outcome.status for outcome in learn_sources(learner, sources)} == {"learned"}
    again = learn_sources(learner, labelled_sources(learner, file, None))
    assert {outcome.status for outcome in again} == {"known"}
    assert [path.name for path, _ in unlabelled_inputs(learner, [file])][-1] == "x.npz[299]"


def test_a_refit_encodes_what_is_in_the_file_from_the_file(learner: Siesta, file: Path, tmp_path: Path) -> None:
    list(learn_sources(learner, labelled_sources(learner, file, None)))
    learner.learn_one(normal(1, 2)[0], "0")
    report = refit(learner, file)
    assert (report.samples, report.from_pictures) == (301, 300) and report.error_after > 0
    np.save(tmp_path / "unlabelled.npy", normal(300, 3))
    assert refit(learner, tmp_path / "unlabelled.npy").from_pictures == 0
    assert isinstance(learner.pipeline.codec, OPQ)


def test_what_a_learner_does_not_take_is_refused(
    learner: Siesta, file: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    np.savez(tmp_path / "bad.npz", vectors=normal(2, 0), labels=["a", "\x00"])
    np.save(tmp_path / "long.npy", np.zeros((3, 9)))
    pictures = make_pictures(tmp_path / "pictures", ["a"])
    images = Siesta.create(":memory:", image_size=32)
    for taken_by, path, labels, words in (
        (learner, pictures, None, "is a folder, and this learner takes vectors: give a .npy or .npz file"),
        (
            learner,
            tmp_path / "long.npy",
            file,
            "holds vectors of 9 numbers, and this learner takes 8: give others, or ",
        ),
        (learner, tmp_path / "bad.npz", None, "label"),
        (images, pictures, file, "those of images are the names of their folders: leave --labels out"),
        (images, file, None, "is not a folder"),
    ):
        with pytest.raises(BadInput, match=re.escape(words)):
            labelled_sources(taken_by, path, labels)
    assert len(labelled_sources(images, pictures, None)) == 3
    assert list(unlabelled_inputs(images, [file])) == [(file, file)]
    learner.learn_many(normal(2, 4), ["a", "b"])
    with pytest.raises(BadInput, match="a judge is a folder of images, and this learner takes vectors: leave it out"):
        learner.sleep(updates=1, judge=pictures)
