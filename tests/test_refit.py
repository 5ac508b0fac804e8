"""A codec fitted anew: what can be is made of pictures, the rest of what was kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.folders import checked_files, teach
from siesta.refit import refit
from tests.conftest import MakePictures


@pytest.fixture
def photos(tmp_path: Path, make_pictures: MakePictures) -> Path:
    return make_pictures(tmp_path / "photos", ["robin", "wren"], each=40)


def test_samples_of_the_folder_are_made_of_their_pictures(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "birds.siesta"
    with Siesta.create(path, image_size=96) as learner, Siesta.open(path, read_only=True) as reader:
        files = checked_files(photos)
        assert {outcome.status for outcome in teach(learner, files)} == {"learned"}
        stranger = learner.learn_one(np.full((96, 96, 3), 99, np.uint8), "robin")  # of no file
        learner.sleep(updates=16, batch_size=8)
        learner.learn_one(files[3][0], files[3][1])
        before = learner.predict_one(files[0][0])
        assert reader.predict_one(files[0][0]) == before
        held, _ = learner.store.samples.held_out(10**6)
        assert len(held)
        found = refit(learner, photos)
        assert (found.samples, found.from_pictures) == (82, 80)
        assert found.error_after < found.error_before
        assert learner.settings["codec_error"] == found.error_after
        pixels = [learner.read(file) for file, _ in files]
        _, codes = learner.store.get(np.arange(1, 81))
        np.testing.assert_array_equal(codes, learner.pipeline.encode(pixels))  # as if encoded with the new codec
        assert learner.store.get(np.array([stranger]))[0].all()
        assert learner.predict_one(files[0][0]) != before
        assert reader.predict_one(files[0][0]) == learner.predict_one(files[0][0])
        (recent,) = [some for some in learner.store.recent([1, 2]) if some.count]
        z = learner.pipeline.features(learner.store.get(np.array([82]))[1])[0]
        np.testing.assert_allclose(recent.total, z, rtol=1e-4, atol=1e-5)
        answers = learner.predict_one(files[0][0])
        assert learner.store.changes.audit()[-1]["what"] == "refit"
        assert learner.store.drift() == (0, 0.0)
    with Siesta.open(path) as again:
        assert again.predict_one(files[0][0]) == answers


def test_what_cannot_be_fitted_is_said(photos: Path, tmp_path: Path) -> None:
    raw, opq = (Siesta.create(":memory:", image_size=32, codec=codec) for codec in ("raw", "opq"))
    with pytest.raises(BadInput, match="no codec to fit"):
        refit(raw, photos)
    with pytest.raises(BadInput):
        refit(opq, tmp_path / "none")
