"""The pipeline against the same computation by hand in torch."""

from __future__ import annotations

import weakref
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from siesta import Siesta
from siesta.engines import ENGINES
from siesta.errors import BadInput
from siesta.images import Pixels, normalize
from siesta.pipeline import Pipeline, batched
from siesta.store import Store

PICTURES: list[Pixels] = list(np.random.default_rng(0).integers(0, 255, (3, 32, 32, 3), dtype=np.uint8))


@pytest.fixture
def slept(tmp_path: Path) -> Path:
    """Return a learner that has slept, so that its top is not the initial one."""
    with Siesta.create(tmp_path / "x.siesta", image_size=32) as learner:
        learner.learn_many(PICTURES, ["a", "b", "c"])
        learner.sleep(updates=4, batch_size=2, lr=0.5)
    return tmp_path / "x.siesta"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_step_equals_the_part_by_itself(slept: Path, engine: str) -> None:
    store = Store.open(slept, "read")
    pipeline = Pipeline.from_store(store, engine=engine)
    assert (pipeline.image_size, pipeline.latent_shape, pipeline.device) == (32, (80, 2, 2), "cpu")
    backbone, codec = pipeline.backbone, pipeline.codec
    codes = pipeline.encode(PICTURES)
    assert codes.shape == (3, 32) and codes.dtype == np.uint8
    with torch.no_grad():
        expected = codec.encode(backbone.bottom(torch.from_numpy(normalize(PICTURES, backbone.normalization))).numpy())
        assert (codes != expected).mean() < 0.05, "engines may round a vector to its neighbour"
        latents = pipeline.decode(codes)
        torch.testing.assert_close(latents, torch.from_numpy(codec.decode(codes, (80, 2, 2))))
        torch.testing.assert_close(torch.from_numpy(pipeline.features(codes)), backbone.top(latents), rtol=0, atol=1e-3)
    for name, array in store.snapshot().weights["top"].items():
        assert np.array_equal(backbone.top.state_dict()[name].numpy(), array), "weights of the active generation"
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_new_weights_are_used_at_once(slept: Path, engine: str) -> None:
    store = Store.open(slept, "read")
    pipeline = Pipeline.from_store(store, engine=engine)
    codes = pipeline.encode(PICTURES)
    before, state, centre = pipeline.features(codes), pipeline.network.top, pipeline.network.centre
    pipeline.load_top({**state, centre: state[centre] + 1})
    np.testing.assert_allclose(pipeline.features(codes), before - 1, atol=1e-3)
    store.close()


def test_codes_can_be_read_only_or_a_view(slept: Path) -> None:
    """SQLite returns read-only bytes; torch would warn, and warnings are errors in tests."""
    store = Store.open(slept, "read")
    pipeline = Pipeline.from_store(store)
    codes = pipeline.encode(PICTURES)
    frozen = np.frombuffer(codes.tobytes(), np.uint8).reshape(codes.shape)
    assert torch.equal(pipeline.decode(frozen), pipeline.decode(codes))
    assert torch.equal(pipeline.decode(frozen[::-1]), pipeline.decode(codes).flip(0))
    store.close()


def test_an_unknown_device_or_engine_is_refused(slept: Path) -> None:
    store = Store.open(slept, "read")
    with pytest.raises(BadInput, match="torch cannot compute on 'abacus'"):
        Pipeline.from_store(store, "abacus")
    with pytest.raises(BadInput, match="there is no engine 'tpu'"):
        Pipeline.from_store(store, engine="tpu")
    store.close()


def test_batches_are_consecutive_and_the_last_may_be_smaller() -> None:
    assert list(batched(iter(range(7)), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(batched([], 3)) == []


def test_stored_weights_are_freed_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    with Siesta.create(path, memory="1MB", image_size=32) as created:
        expected = {part: dict(getattr(created.pipeline.network, part)) for part in ("bottom", "top")}
    with closing(Store.open(path, "read")) as store:
        snapshot = store.snapshot()
        references = [weakref.ref(snapshot.weights["top"][name]) for name in expected["top"]]
        pipeline = Pipeline.from_store(store, top=snapshot.weights["top"])
        assert not any(reference() is not None for reference in references)
        for part, arrays in expected.items():
            for name, array in getattr(pipeline.network, part).items():
                np.testing.assert_array_equal(array, arrays[name])
