"""Conformance of all engines: they compute what torch computes, for every backbone and any batch size."""

from __future__ import annotations

import pytest

from siesta.backbones import BACKBONES
from siesta.contracts import Engine
from siesta.engines import ENGINES, choose_engine
from siesta.errors import BadInput
from siesta.pipeline import NetworkEngines
from tests.engines.networks import (
    SIZE,
    backbone_with_random_norms,
    inputs_for,
    network_of,
    relative_difference,
    torch_output,
)


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("engine", ENGINES)
def test_bottom_and_top_agree_with_torch(name: str, engine: str) -> None:
    backbone = backbone_with_random_norms(name)
    engines = NetworkEngines(network_of(backbone), engine=engine)
    assert engines.latent_shape == backbone.latent_shape(SIZE)
    parts = (((3, SIZE, SIZE), engines.bottom, backbone.bottom), (engines.latent_shape, engines.top, backbone.top))
    for shape, running, module in parts:
        assert isinstance(running, Engine)
        for batch in (1, 3):
            x = inputs_for(shape, batch)
            assert relative_difference(running.run(x), torch_output(module, x)) < 1e-4


def test_the_engine_fits_the_device() -> None:
    assert choose_engine(None, "cpu") == "onnx" and choose_engine(None, "cuda") == "torch"
    assert choose_engine("torch", "cpu") == "torch"
    with pytest.raises(BadInput, match="there is no engine 'tpu': choose one of onnx, torch"):
        choose_engine("tpu", "cpu")
    with pytest.raises(BadInput, match="on the CPU only"):
        choose_engine("onnx", "cuda")
