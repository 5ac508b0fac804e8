"""Graphs as the package `onnx` reads and writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from siesta.contracts import Operation
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph, weight_names

RNG = np.random.default_rng(0)
WEIGHTS: dict[str, npt.NDArray[Any]] = {
    "weight": RNG.standard_normal((2, 3, 3, 3)).astype(np.float32),
    "bias": RNG.standard_normal(2).astype(np.float32),
    "counter": np.array(300, np.int64),
}
OPERATIONS = [
    Operation("Conv", (INPUT, "weight", "bias"), "a", {"pads": [1, 1, 1, 1], "group": 1, "auto_pad": "NOTSET"}),
    Operation("LeakyRelu", ("a",), "b", {"alpha": 0.25}),
    Operation("Transpose", ("b",), OUTPUT, {"perm": [0, 2, 3, 1]}),
]


def test_a_graph_is_what_onnx_would_write() -> None:
    graph = encode_graph(OPERATIONS, WEIGHTS, (3, 300, 5))
    model = onnx.load_model_from_string(fill_graph(graph, WEIGHTS))
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True), full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Conv", "LeakyRelu", "Transpose"]
    assert {each.name: onnx.helper.get_attribute_value(each) for each in model.graph.node[0].attribute} == {
        "pads": [1, 1, 1, 1],
        "group": 1,
        "auto_pad": b"NOTSET",
    }
    assert onnx.helper.get_attribute_value(model.graph.node[1].attribute[0]) == 0.25
    (given,) = model.graph.input
    dims = given.type.tensor_type.shape.dim
    assert given.name == INPUT and [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 3, 300, 5]
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert found.keys() == {"weight", "bias"}, "no operation takes the counter"
    assert all(np.array_equal(array, WEIGHTS[name]) for name, array in found.items())


def test_a_filled_graph_runs() -> None:
    model = fill_graph(encode_graph(OPERATIONS, WEIGHTS, (3, 4, 5)), WEIGHTS)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {INPUT: np.ones((2, 3, 4, 5), np.float32)})
    inner = WEIGHTS["weight"].sum(axis=(1, 2, 3)) + WEIGHTS["bias"]
    np.testing.assert_allclose(output[0, 1, 1], np.where(inner > 0, inner, 0.25 * inner), rtol=1e-5)


def test_the_names_are_those_of_weights_without_numbers() -> None:
    graph = encode_graph(OPERATIONS, WEIGHTS, (3, 4, 5))
    assert weight_names(graph) == {"weight", "bias"}
    assert weight_names(fill_graph(graph, {"bias": WEIGHTS["bias"]})) == {"weight"}


def test_a_graph_that_onnx_wrote_is_filled() -> None:
    node = onnx.helper.make_node("Add", [INPUT, "offset"], [OUTPUT])
    value = onnx.helper.make_tensor_value_info
    inputs, outputs = (value(name, onnx.TensorProto.FLOAT, ["batch", 2]) for name in (INPUT, OUTPUT))
    offset = numpy_helper.from_array(np.zeros(2, np.float32), "offset")
    offset.ClearField("raw_data")
    graph = onnx.helper.make_graph([node], "main", [inputs], [outputs], [offset])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    written = model.SerializeToString()
    assert weight_names(written) == {"offset"}
    filled = fill_graph(written, {"offset": np.array([1, 2], np.float32)})
    session = onnxruntime.InferenceSession(filled, providers=["CPUExecutionProvider"])
    assert session.run(None, {INPUT: np.zeros((1, 2), np.float32)})[0].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("data", [b"\xff\xff rubbish", b"\x0a\x05ab", b"\x80"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="protobuf"):
        weight_names(data)
