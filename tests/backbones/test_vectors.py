from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from siesta.backbones import PUBLISHED, VECTOR_NETWORKS, make_backbone, vector_network
from siesta.backbones.arrays import state_arrays
from siesta.backbones.cut_network import initial_network
from siesta.engines import OnnxEngine
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph
from siesta.errors import BadInput
from tests.engines.networks import relative_difference, torch_output


@pytest.mark.parametrize("name", VECTOR_NETWORKS)
def test_a_new_top_only_scales_vectors(name: str) -> None:
    network = initial_network(name, None, weights=PUBLISHED, linear=False, input_size=6)
    vectors = np.random.default_rng(0).normal(0, 100, (3, 1, 6)).astype(np.float32)
    vectors[2] = 0
    engine = engine_of(network.torch_backbone().top, name, vectors.shape[1:])
    z = engine.run(vectors)
    length = np.sqrt(np.square(vectors).mean(axis=2, keepdims=True))
    np.testing.assert_allclose(z, (vectors / np.maximum(length, 1e-6))[:, 0], rtol=1e-5)
    assert z.shape == (3, network.spec.features) == (3, 6)


@pytest.mark.parametrize("name", VECTOR_NETWORKS)
def test_the_graph_computes_what_torch_does(name: str) -> None:
    top = make_backbone(name, image_size=10).top
    for parameter in top.parameters():
        parameter.data.normal_(0, 0.3)
    tokens = np.random.default_rng(1).normal(size=(4, 3, 10)).astype(np.float32)
    assert relative_difference(engine_of(top, name, (3, 10)).run(tokens), torch_output(top, tokens)) < 1e-5


def engine_of(top: nn.Sequential, name: str, shape: tuple[int, ...]) -> OnnxEngine:
    network = initial_network(name, None, weights=PUBLISHED, linear=False, input_size=shape[-1])
    operations, weights = network.operations("top", INPUT, OUTPUT), state_arrays(top)
    assert operations is not None
    model = fill_graph(encode_graph(operations, weights, shape), weights)
    return OnnxEngine(lambda: model)


def test_initial_weights_are_the_same_each_time_and_differ_between_blocks() -> None:
    first, again = (make_backbone("vectors_2", image_size=8).top.state_dict() for _ in range(2))
    assert all(bool((first[name] == again[name]).all()) for name in first)
    assert bool((first["1.fc1.weight"] != first["2.fc1.weight"]).any())
    assert not first["1.fc2.weight"].any() and not first["2.fc2.weight"].any()


def test_names_of_networks() -> None:
    assert vector_network(768, 3) == "vectors_3" and vector_network(1, None) in VECTOR_NETWORKS
    for features in (0, -1, 10**9):
        with pytest.raises(BadInput, match=rf"features is {features}: give the length of your vectors, 1 to 8,192"):
            vector_network(features, None)
    for layers in (0, 4):
        with pytest.raises(BadInput, match=f"top_layers is {layers}: give 1 to 3"):
            vector_network(8, layers)
