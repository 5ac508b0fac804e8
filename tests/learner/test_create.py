"""Creating a learner with each of its options."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from siesta import Siesta
from siesta.backbones import BACKBONES, RANDOM, SPACES, make_backbone, save_checkpoint
from siesta.engines import OnnxEngine
from siesta.errors import BadInput, DiskRefused
from siesta.learner.info import CodecInfo, WeightsInfo
from siesta.learner.state import LearnerState
from tests.learner.colours import COLOURS, labelled_pictures, picture
from tests.stores import store_of


def centre_of(learner: Siesta) -> npt.NDArray[Any]:
    network = learner.pipeline.network
    return network.top[network.centre]


@pytest.mark.parametrize(("given", "used"), [(None, 240), (32, 32)])
def test_the_image_size_is_the_backbones_own_unless_it_is_given(given: int | None, used: int) -> None:
    learner = Siesta.create(
        ":memory:", backbone="efficientnet_lite1", weights=RANDOM, codec="raw", engine="torch", image_size=given
    )
    assert learner.info().backbone.image_size == used
    assert learner.read(picture("red")).shape == (used, used, 3)


@pytest.mark.parametrize("space", SPACES)
def test_every_space_can_be_chosen_and_is_kept(space: str, tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32, space=space) as made:
        made.learn_many(*labelled_pictures(3))
        made.sleep(updates=8, batch_size=4)
        answer, codes = made.predict_one(picture("red", 9)), made.encode([picture("red", 9)])
        assert made.info().backbone.space == space
    with Siesta.open(tmp_path / "x.siesta", engine="torch") as opened:
        assert opened.info().backbone.space == space
        assert bool(centre_of(opened).any()) == SPACES[space].centred
        features = opened.pipeline.features(codes) + centre_of(opened)
        assert bool((features < 0).any()) == SPACES[space].linear, "a ReLU6 is the last activation"
        again = opened.predict_one(picture("red", 9))
        assert again.label == answer.label == "red" and again.score == pytest.approx(answer.score, abs=1e-3)


def test_the_centre_is_the_mean_in_its_space(base: Path) -> None:
    """Each is the mean of what the network gives for base pictures, in that space."""
    shipped = [centre_of(Siesta.create(":memory:", image_size=32, space=s)) for s in ("centred", "linear_centred")]
    assert (shipped[0] >= 0).all() and (shipped[1] < 0).any()
    for space in ("centred", "linear_centred"):
        learner = Siesta.create(":memory:", image_size=96, space=space, base=base)
        features = learner.pipeline.features(learner.encode(sorted(base.iterdir())))
        assert np.abs(features.mean(axis=0)).max() < 1e-3 < np.abs(features).max()


def test_a_learner_without_the_space_setting_opens_as_it_was(tmp_path: Path) -> None:
    for name in ("centred", "plain"):
        path = tmp_path / name
        with Siesta.create(path, image_size=32, space=name) as made:
            made.learn_many(*labelled_pictures(2))
            answer = made.predict_one(picture("red", 9))
        with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
            assert connection.execute("DELETE FROM settings WHERE name IN ('space', 'checksum')").rowcount == 2
        with Siesta.open(path) as opened:
            assert opened.predict_one(picture("red", 9)) == answer
            assert opened.info().backbone.space == name


def test_raw_images_with_own_weights_need_base_images_for_a_centre(base: Path) -> None:
    options: dict[str, Any] = {"image_size": 32, "codec": "raw", "weights": RANDOM}
    made = Siesta.create(":memory:", **options)
    assert made.info().backbone.space == "plain" and not centre_of(made).any()
    with pytest.raises(BadInput, match=r"a linear_centred space needs .* \(base=\.\.\., --base FOLDER\)$"):
        Siesta.create(":memory:", **options, space="linear_centred")
    assert centre_of(Siesta.create(":memory:", **options, space="linear_centred", base=base)).any()


def test_a_codec_is_fitted_on_a_folder_for_any_cut(base: Path) -> None:
    with pytest.raises(BadInput, match="no fitted codec comes with"):
        Siesta.create(":memory:", cut=5, image_size=32)
    learner = Siesta.create(":memory:", cut=5, image_size=32, base=base)
    learner.learn_many(*labelled_pictures(3))
    assert 0 < learner.info().codec.relative_error < 1
    assert learner.predict_one(picture("red")).label in COLOURS


def test_a_codec_is_fitted_on_all_given_images(base: Path) -> None:
    files = sorted(base.iterdir())
    by_file, by_array = (
        Siesta.create(":memory:", image_size=96, base=(change(file) for file in [*files, Path("nowhere.png")][:count]))
        for change, count in ((Path, 25), (lambda file: np.asarray(Image.open(file)), 24))
    )
    assert by_file.info() == by_array.info()
    assert np.array_equal(centre_of(by_file), centre_of(by_array))
    with pytest.raises(BadInput, match="none of the images to fit on can be read"):
        Siesta.create(":memory:", image_size=32, base=["nowhere.png"])


SLOW = {"mobilenet_v3_large_plain", "resnet18", "resnet18_gn"}  # to export; of the same layers as others


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name, spec in BACKBONES.items()
        if spec.published is None
    ],
)
def test_another_backbone_learns_and_sleeps_with_weights_from_a_file(name: str, base: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    size = min(96, BACKBONES[name].image_size)
    network = make_backbone(name, weights=RANDOM, image_size=size)
    save_checkpoint(network, file)
    with pytest.raises(BadInput, match="a codec has to be fitted to these weights"):
        Siesta.create(":memory:", backbone=name, weights=file, image_size=size)
    learner = Siesta.create(tmp_path / "x.siesta", backbone=name, weights=file, image_size=size, base=base)
    assert learner.info().backbone.weights == WeightsInfo("weights.safetensors", ignored=())
    bottom = learner.pipeline.backbone.bottom.state_dict()
    assert all(torch.equal(bottom[tensor], value) for tensor, value in network.bottom.state_dict().items())
    learner.learn_many(*labelled_pictures(3))
    assert learner.sleep(updates=8, batch_size=4, lr=0.001).top_change > 0
    answer = learner.predict_one(picture("red"))
    learner.close()
    with Siesta.open(tmp_path / "x.siesta") as again:
        assert again.predict_one(picture("red")) == answer


def test_options_of_the_codec_are_kept_by_the_learner(base: Path, tmp_path: Path) -> None:
    options = {"codebooks": 16, "bits": 4}
    with Siesta.create(tmp_path / "x.siesta", codec_options=options, base=base, image_size=32) as learner:
        assert learner.encode([picture("red")]).shape == (1, 4 * 16)
        learner.learn_many([picture("red"), picture("blue")], ["red", "blue"])
        learner.sleep(updates=4, batch_size=2)
        prediction = learner.predict_one(picture("red"))
    with Siesta.open(tmp_path / "x.siesta") as again:
        assert again.pipeline.codec.options == options
        assert again.predict_one(picture("red")) == prediction


def test_the_raw_codec_stores_images_and_trains_the_whole_network() -> None:
    learner = Siesta.create(":memory:", memory="1MB", image_size=32, codec="raw")
    images, labels = labelled_pictures(4)
    learner.learn_many(images, labels)
    facts = learner.info()
    assert facts.bytes.a_sample == 32 * 32 * 3 + 32
    assert facts.codec == CodecInfo("raw", relative_error=0.0, error_lately=0.0, drifted=False)
    _, codes = store_of(learner).samples.get(np.array([1]))
    assert np.array_equal(codes.reshape(3, 32, 32).transpose(1, 2, 0), images[0])
    report = learner.sleep(updates=16, batch_size=8)
    assert report.updates == 16 and learner.predict_one(images[0]).label in COLOURS
    assert sum(p.numel() for p in learner.pipeline.backbone.top.parameters()) > 3_300_000


def test_a_learner_created_for_torch_can_be_opened_with_onnx(tmp_path: Path) -> None:
    with Siesta.create(tmp_path / "x.siesta", image_size=32, engine="torch") as made:
        made.learn_one(picture("red"), "red")
    with Siesta.open(tmp_path / "x.siesta") as opened:
        assert opened.predict_one(picture("red")).label == "red" and isinstance(opened.pipeline.engines.top, OnnxEngine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"codec": "zip"}, "there is no codec 'zip'"),
        ({"space": "outer"}, "there is no space 'outer': choose one of centred, plain, linear, linear_centred"),
        ({"codec": "raw", "cut": 7}, "remove cut=7"),
        ({"codec": "raw", "codec_options": {"bits": 4}}, "codec raw has no option 'bits'"),
        ({"codec_options": {"codebooks": 3}}, "multiple of 3 channels and the latents have 80"),
        ({"codec_options": {"bits": 9}}, "'bits' of codec opq is 9"),
        ({"codec_options": {"bits": 4}}, r"no fitted codec comes with .*codec opq, bits 4"),
        ({"device": "abacus"}, "torch cannot compute on 'abacus'"),
        ({"device": "cuda"}, "torch cannot compute on 'cuda'"),
        ({"engine": "tpu"}, "there is no engine 'tpu'"),
        ({"image_size": 31}, "image_size is 31: give 32 to"),
        ({"image_size": 5000}, "image_size is 5000"),
        ({"memory": "10"}, "holds no sample"),
        ({"memory": "lots"}, "not a size"),
        ({"backbone": "vgg"}, "no backbone 'vgg'"),
        ({"backbone": "resnet18"}, "resnet18 has no published weights"),
        ({"backbone": "vit_tiny_16", "space": "linear"}, "vit_tiny_16 has no activation before z to leave out: choose"),
        ({"weights": "/nowhere"}, "no file of weights at /nowhere"),
        ({"base": "/nowhere"}, "not a folder"),
    ],
)
def test_invalid_options_are_refused_and_leave_nothing(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Siesta.create(tmp_path / "x.siesta", **{"image_size": 32, **options})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_learner_that_cannot_be_loaded_at_once_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DiskRefused("the disk refused")

    with monkeypatch.context() as patch, pytest.raises(DiskRefused):
        patch.setattr(LearnerState, "_use", refuse)
        Siesta.create(tmp_path / "x.siesta", image_size=32, weights="random", codec="raw")
    assert list(tmp_path.iterdir()) == []
    Siesta.create(tmp_path / "x.siesta", image_size=32, weights="random", codec="raw").close()
