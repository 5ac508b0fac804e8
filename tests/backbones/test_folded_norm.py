"""Folded batch norms: the operations that are left, and the numbers that ONNX Runtime computes itself."""

from __future__ import annotations

import numpy as np
import onnxruntime

from siesta.backbones.cut_network import initial_network
from siesta.backbones.folded_norm import fold_norms
from siesta.contracts import Operation
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph
from tests.engines.networks import inputs_for


def test_the_network_computes_the_same_to_the_bit() -> None:
    network = initial_network("efficientnet_lite0", None, weights="published", linear=False, input_size=32)
    operations = network.operations("bottom", INPUT, OUTPUT)
    assert operations is not None
    folded, weights = fold_norms(operations, network.bottom)
    assert "BatchNormalization" in {each.kind for each in operations} - {each.kind for each in folded}
    x = inputs_for((3, 32, 32), batch=2)
    outputs = []
    for listed, arrays in ((operations, network.bottom), (folded, weights)):
        model = fill_graph(encode_graph(listed, arrays, (3, 32, 32)), arrays)
        outputs += onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {INPUT: x})
    np.testing.assert_array_equal(*outputs)


def test_a_convolution_with_a_bias_or_a_second_use() -> None:
    rng = np.random.default_rng(0)
    names = ("filters", "bias", "scale", "shift", "mean", "variance")
    weights = {name: rng.uniform(0.5, 2, 3).astype(np.float32) for name in names}
    weights["filters"] = weights["filters"].reshape(3, 1, 1, 1)
    norm = Operation("BatchNormalization", ("found", "scale", "shift", "mean", "variance"), OUTPUT, {"epsilon": 0.25})
    convolution = Operation("Conv", (INPUT, "filters", "bias"), "found")
    (folded,), arrays = fold_norms([convolution, norm], weights)
    factor = weights["scale"] / np.sqrt(weights["variance"] + 0.25)
    assert folded.kind == "Conv" and folded.output == OUTPUT
    np.testing.assert_allclose(arrays[folded.inputs[1]].ravel(), weights["filters"].ravel() * factor, rtol=1e-6)
    expected = (weights["bias"] - weights["mean"]) * factor + weights["shift"]
    np.testing.assert_allclose(arrays[folded.inputs[2]], expected, rtol=1e-5)

    used_twice = [convolution, norm, Operation("Add", ("found", OUTPUT), "sum")]
    assert fold_norms(used_twice, weights)[0] == used_twice
