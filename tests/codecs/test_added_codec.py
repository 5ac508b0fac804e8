"""Cross-cutting: a codec that is only put into `CODECS` works everywhere, from creation to refit, and in a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pytest
from torch import Tensor, nn

from siesta import Siesta
from siesta.backbones import BACKBONES
from siesta.codecs import CODECS
from siesta.codecs.decoder import Decoder
from siesta.codecs.latents import from_vectors, to_vectors
from siesta.contracts import Codec, Codes, Latents, LatentShape, Normalization
from siesta.errors import BadInput
from siesta.learner.folders import learn_files, valid_labelled_files
from siesta.learner.refit import refit
from siesta.methods.ncm import NCM
from tests.conftest import MakePictures
from tests.pretrain.toys import TINY_SPEC
from tests.stores import store_of


class Scalar:
    """Every element of a latent vector as one of a few steps between its channel's extremes."""

    name: ClassVar[str] = "scalar"
    cut: ClassVar[int | None] = None
    needs_fit: ClassVar[bool] = True

    def __init__(self, low: npt.NDArray[np.float32], step: npt.NDArray[np.float32], steps: int) -> None:
        self._low = low
        self._step = step
        self._steps = steps

    @classmethod
    def fit(cls, vectors: Latents, _seed: int, _normalization: Normalization, *, steps: int = 256) -> Self:
        cls.check(vectors.shape, steps=steps)
        low, high = vectors.min(axis=0), vectors.max(axis=0)
        return cls(low, np.maximum(high - low, 1e-6) / np.float32(steps - 1), steps)

    @classmethod
    def check(cls, _latent_shape: LatentShape, *, steps: int = 256) -> None:
        if not 2 <= steps <= 256:
            raise BadInput(f"steps is {steps}: give 2 to 256")

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Self:
        return cls(state["low"], state["step"], int(state["steps"][0]))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {"low": self._low, "step": self._step, "steps": np.array([self._steps])}

    @property
    def options(self) -> dict[str, Any]:
        return {"steps": self._steps}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        return math.prod(latent_shape)

    def encode_flops(self, _latent_shape: LatentShape) -> int:
        return 0

    def encode(self, latents: Latents) -> Codes:
        steps = np.rint((to_vectors(latents) - self._low) / self._step).clip(0, self._steps - 1)
        codes: Codes = steps.astype(np.uint8)
        return codes.reshape(len(latents), -1)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        return from_vectors(codes.reshape(-1, len(self._low)) * self._step + self._low, latent_shape)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        return Decoder(partial(_decode, latent_shape), low=self._low, step=self._step)


def _decode(latent_shape: LatentShape, codes: Tensor, *, low: Tensor, step: Tensor) -> Tensor:
    return from_vectors(codes.reshape(-1, len(low)) * step + low, latent_shape)


class Half:
    """Latents in half precision; nothing is fitted."""

    name: ClassVar[str] = "half"
    cut: ClassVar[int | None] = None
    needs_fit: ClassVar[bool] = False

    @classmethod
    def fit(cls, _vectors: Latents, _seed: int, _normalization: Normalization) -> Self:
        return cls()

    @classmethod
    def check(cls, _latent_shape: LatentShape) -> None:
        return None

    @classmethod
    def from_state(cls, _state: Mapping[str, npt.NDArray[Any]]) -> Self:
        return cls()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {"bits": np.array([16])}

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        return 2 * math.prod(latent_shape)

    def encode_flops(self, _latent_shape: LatentShape) -> int:
        return 0

    def encode(self, latents: Latents) -> Codes:
        return to_vectors(latents).astype(np.float16).reshape(len(latents), -1).view(np.uint8)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        values = np.ascontiguousarray(codes).view(np.float16).astype(np.float32)
        return from_vectors(values.reshape(-1, latent_shape[0]), latent_shape)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        return Decoder(partial(_widen, latent_shape))


def _widen(latent_shape: LatentShape, codes: Tensor) -> Tensor:
    import torch

    return from_vectors(codes.contiguous().view(torch.float16).float().reshape(-1, latent_shape[0]), latent_shape)


ADDED: dict[str, type[Codec]] = {"scalar": Scalar, "half": Half}


@pytest.fixture(params=list(ADDED))
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a codec that is registered for the test."""
    monkeypatch.setitem(CODECS, request.param, ADDED[request.param])
    return str(request.param)


@pytest.fixture
def photos(tmp_path: Path, make_pictures: MakePictures) -> Path:
    return make_pictures(tmp_path / "photos", ["robin", "wren"], each=8)


def test_a_learner_uses_it_all_its_life(name: str, photos: Path, tmp_path: Path) -> None:
    files = valid_labelled_files(photos)
    path = tmp_path / "birds.siesta"
    with Siesta.create(path, codec=name, base=photos, image_size=32) as learner:
        assert {outcome.status for outcome in learn_files(learner, files)} == {"learned"}
        assert learner.sleep(updates=8, batch_size=4).updates == 8
        assert learner.predict_one(files[0][0]).label == "robin"
        error = learner.info().codec
        assert error.name == name and 0 < error.relative_error < 0.01 and not error.drifted
    with Siesta.open(path) as again:
        assert isinstance(again.pipeline.codec, ADDED[name])
        assert again.predict_one(files[-1][0]).label == "wren"
        if not ADDED[name].needs_fit:
            with pytest.raises(BadInput, match="no codec to fit"):
                refit(again, photos)
            return
        assert refit(again, photos).from_pictures == 16
        codes = store_of(again).samples.get(np.arange(1, 17))[1]
        np.testing.assert_array_equal(codes, again.encode(file for file, _ in files))
        assert again.predict_one(files[-1][0]).label == "wren"


def test_a_method_learns_from_it(name: str, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = valid_labelled_files(photos)
    with Siesta.create(tmp_path / "start.siesta", codec=name, base=photos, image_size=32) as learner:
        codes = learner.encode(file for file, _ in files)
    monkeypatch.setattr(NCM, "codec", name)
    method = NCM(tmp_path / "start.siesta", NCM.Settings(), 0)
    method.learn_many(codes, [label for _, label in files])
    answers = method.predict_many(codes, top=1)
    costs = method.resources()
    method.close()
    assert answers == [[label] for _, label in files]
    assert costs.flops["wake"] > 0 and costs.bytes.get("images", 0) == 0


def test_its_options_are_checked_kept_and_used_again_by_a_refit(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CODECS, "scalar", Scalar)
    with pytest.raises(BadInput, match="codec scalar has no option 'step': it has steps"):
        Siesta.create(":memory:", codec="scalar", codec_options={"step": 4}, base=photos, image_size=32)
    with pytest.raises(BadInput, match="steps is 1: give 2 to 256"):
        Siesta.create(":memory:", codec="scalar", codec_options={"steps": 1}, base=photos, image_size=32)
    with pytest.raises(BadInput, match=r"no fitted codec comes with .*codec scalar"):
        Siesta.create(":memory:", codec="scalar", image_size=32)
    learner = Siesta.create(":memory:", codec="scalar", codec_options={"steps": 16}, base=photos, image_size=32)
    list(learn_files(learner, valid_labelled_files(photos)))
    refit(learner, photos)
    assert learner.pipeline.codec.options == {"steps": 16}
    assert store_of(learner).samples.get(np.arange(1, 17))[1].max() == 15


def test_a_codec_and_a_backbone_can_be_given_as_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (BACKBONES, CODECS):
        monkeypatch.setattr(registry, "_own", dict(registry.own))  # forgets them after the test
    path, spec = tmp_path / "x.siesta", replace(TINY_SPEC, name="mine")
    with Siesta.create(path, backbone=spec, codec=Half, weights="random", image_size=32, engine="torch") as learner:
        learner.learn_one(np.full((32, 32, 3), 200, np.uint8), "bright")
        assert (learner.settings["backbone"], learner.settings["codec"]) == ("mine", "half")
    with Siesta.open(path, engine="torch") as learner:
        assert learner.predict_one(np.full((32, 32, 3), 200, np.uint8)).label == "bright"
    with pytest.raises(BadInput, match="the given backbone has no name, which has to be stored"):
        Siesta.create(tmp_path / "y.siesta", backbone=TINY_SPEC, weights="random")
