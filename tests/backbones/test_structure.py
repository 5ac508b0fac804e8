"""The structures of siesta's own networks are those of their torch modules."""

from __future__ import annotations

from functools import partial

import pytest

from siesta.backbones import BACKBONES
from siesta.backbones.structure import read_structure
from siesta.engines import OnnxEngine
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph
from tests.engines.networks import (
    SIZE,
    backbone_with_random_norms,
    inputs_for,
    network_of,
    relative_difference,
    torch_output,
)

CUTS = [
    (name, cut, linear) for name, spec in BACKBONES.own.items() for cut in (0, *spec.cuts) for linear in (False, True)
]


def is_slow(name: str, cut: int) -> bool:
    return not (name in ("efficientnet_lite0", "mobilenet_v3_large", "vit_tiny_16") and cut in (0, 8))


@pytest.mark.parametrize(
    ("name", "cut", "linear"),
    [
        pytest.param(name, cut, linear, marks=pytest.mark.slow if is_slow(name, cut) else ())
        for name, cut, linear in CUTS
        if not (linear and BACKBONES[name].last_activation is None)
    ],
)
def test_the_graph_of_any_cut_computes_what_torch_does(name: str, cut: int, linear: bool) -> None:
    backbone = backbone_with_random_norms(name, cut, linear=linear)
    network = network_of(backbone, linear=linear)
    x = images = inputs_for((3, SIZE, SIZE), batch=2)
    for part, module in (("bottom", backbone.bottom), ("top", backbone.top)):
        operations, weights = network.operations(part, INPUT, OUTPUT), getattr(network, part)
        assert operations is not None
        model = fill_graph(encode_graph(operations, weights, x.shape[1:]), weights)
        engine = OnnxEngine(partial(bytes, model))
        expected = torch_output(module, x)
        assert relative_difference(engine.run(x), expected) < 1e-4
        x = expected
    assert x.shape == (len(images), backbone.features)


def test_every_weight_of_a_network_is_used() -> None:
    for name in ("efficientnet_lite0", "mobilenet_v3_large", "resnet18_gn", "vit_tiny_16"):
        network = network_of(backbone_with_random_norms(name))
        for part in ("bottom", "top"):
            operations = network.operations(part, INPUT, OUTPUT)
            assert operations is not None
            taken = {given for operation in operations for given in operation.inputs}
            unused = getattr(network, part).keys() - taken
            assert all(name.endswith("num_batches_tracked") for name in unused)


def test_a_network_of_another_package_has_no_structure() -> None:
    assert read_structure("somebody_elses") is None
