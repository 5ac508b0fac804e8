"""The way of a picture against the same way taken by hand, in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta import Siesta
from siesta.engines import ENGINES
from siesta.errors import BadInput
from siesta.images import Pixels, scaled
from siesta.pipeline import Pipeline
from siesta.store import Store

PICTURES: list[Pixels] = list(np.random.default_rng(0).integers(0, 255, (3, 32, 32, 3), dtype=np.uint8))


@pytest.fixture
def slept(tmp_path: Path) -> Path:
    """A learner whose top is no longer the one it was made with."""
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        learner.learn_many(PICTURES, ["a", "b", "c"])
        learner.sleep(updates=4, batch_size=2, rate=0.5)
    return tmp_path / "x.siesta"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_step_is_what_its_part_computes(slept: Path, engine: str) -> None:
    store = Store.open(slept, "read")
    pipeline = Pipeline.of(store, engine=engine)
    assert (pipeline.image_size, pipeline.latent_shape, pipeline.device.type) == (32, (80, 2, 2), "cpu")
    backbone, codec = pipeline.backbone, pipeline.codec
    codes = pipeline.encode(PICTURES)
    assert codes.shape == (3, 32) and codes.dtype == np.uint8
    with torch.no_grad():
        expected = codec.encode(backbone.bottom(scaled(PICTURES, backbone.scaling)))
        assert (codes != expected.numpy()).mean() < 0.05, "engines may round a vector to its neighbour"
        latents = pipeline.decode(codes)
        torch.testing.assert_close(latents, codec.decode(torch.from_numpy(codes), (80, 2, 2)))
        torch.testing.assert_close(torch.from_numpy(pipeline.features(codes)), backbone.top(latents), rtol=0, atol=1e-3)
    for name, tensor in store.snapshot().weights["top"].items():
        assert torch.equal(backbone.top.state_dict()[name], tensor), "the generation in use"
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_new_weights_are_computed_with_at_once(slept: Path, engine: str) -> None:
    store = Store.open(slept, "read")
    pipeline = Pipeline.of(store, engine=engine)
    codes = pipeline.encode(PICTURES)
    before, state = pipeline.features(codes), pipeline.backbone.top.state_dict()
    (centre,) = (name for name in state if name.endswith("centre"))
    pipeline.load_top({**state, centre: state[centre] + 1})
    np.testing.assert_allclose(pipeline.features(codes), before - 1, atol=1e-3)
    store.close()


def test_codes_may_be_read_only_or_a_view(slept: Path) -> None:
    """As SQLite's bytes and slices of a cache are; torch would warn, and a warning is an error here."""
    store = Store.open(slept, "read")
    pipeline = Pipeline.of(store)
    codes = pipeline.encode(PICTURES)
    frozen = np.frombuffer(codes.tobytes(), np.uint8).reshape(codes.shape)
    assert torch.equal(pipeline.decode(frozen), pipeline.decode(codes))
    assert torch.equal(pipeline.decode(frozen[::-1]), pipeline.decode(codes).flip(0))
    store.close()


def test_an_impossible_device_or_engine_is_refused(slept: Path) -> None:
    store = Store.open(slept, "read")
    with pytest.raises(BadInput, match="torch cannot compute on 'abacus'"):
        Pipeline.of(store, "abacus")
    with pytest.raises(BadInput, match="there is no engine 'tpu'"):
        Pipeline.of(store, engine="tpu")
    store.close()
