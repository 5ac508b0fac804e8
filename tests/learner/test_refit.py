"""A codec fitted anew: what can be is made of pictures, the rest of what was kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.learner.folders import learn_files, valid_labelled_files
from siesta.learner.refit import refit
from tests.conftest import MakePictures
from tests.stores import store_of


@pytest.fixture
def photos(tmp_path: Path, make_pictures: MakePictures) -> Path:
    return make_pictures(tmp_path / "photos", ["robin", "wren"], each=40)


def test_samples_of_the_folder_are_encoded_from_their_images(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "birds.siesta"
    with Siesta.create(path, image_size=96) as learner, Siesta.open(path, read_only=True) as reader:
        files = valid_labelled_files(photos)
        assert {outcome.status for outcome in learn_files(learner, files)} == {"learned"}
        stranger = learner.learn_one(np.full((96, 96, 3), 99, np.uint8), "robin")  # of no file
        learner.sleep(updates=16, batch_size=8)
        learner.learn_one(files[3][0], files[3][1])
        before = learner.predict_one(files[0][0])
        assert reader.predict_one(files[0][0]) == before
        held, _ = store_of(learner).samples.held_out(10**6)
        assert len(held)
        found = refit(learner, photos)
        assert (found.samples, found.from_pictures) == (82, 80)
        assert found.error_after < found.error_before
        assert learner.settings["codec_error"] == found.error_after
        pixels = [learner.read(file) for file, _ in files]
        _, codes = store_of(learner).samples.get(np.arange(1, 81))
        np.testing.assert_array_equal(codes, learner.pipeline.encode(pixels))  # as if encoded with the new codec
        assert store_of(learner).samples.get(np.array([stranger]))[0].all()
        assert learner.predict_one(files[0][0]) != before
        assert reader.predict_one(files[0][0]) == learner.predict_one(files[0][0])
        (recent,) = [some for some in store_of(learner).classes.recent([1, 2]) if some.count]
        z = learner.pipeline.features(store_of(learner).samples.get(np.array([82]))[1])[0]
        np.testing.assert_allclose(recent.total, z, rtol=1e-4, atol=1e-5)
        answers = learner.predict_one(files[0][0])
        assert learner.info().changes[-1]["what"] == "refit"
        assert store_of(learner).drift.read() == (0, 0.0)
    with Siesta.open(path) as again:
        assert again.predict_one(files[0][0]) == answers


def test_raw_codecs_and_empty_folders_are_refused(photos: Path, tmp_path: Path) -> None:
    raw, opq = (Siesta.create(":memory:", image_size=32, codec=codec) for codec in ("raw", "opq"))
    with pytest.raises(BadInput, match="no codec to fit"):
        refit(raw, photos)
    with pytest.raises(BadInput):
        refit(opq, tmp_path / "none")
