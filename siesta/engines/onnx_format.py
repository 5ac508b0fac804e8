"""ONNX files, read and written in protobuf's wire format, as far as graphs without weights need it.

What siesta needs of the format are names, shapes and bytes, so that the package `onnx` is no dependency. The numbers of
the fields are those of `onnx.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Attribute, Operation

__all__ = ["INPUT", "OUTPUT", "encode_graph", "fill_graph", "weight_names"]

Bytes = bytes | memoryview

INPUT, OUTPUT = "input", "output"

_OPSET = 20
_IR_VERSION = 9
_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
"""TensorProto.DataType by the name that NumPy has for it."""

_VARINT, _LENGTH = 0, 2  # wire types
_FIXED = {1: 8, 5: 4}  # wire type -> bytes of its value

_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_OPSETS, _MODEL_METADATA = 1, 7, 8, 14
_OPSET_VERSION = 2
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_TYPE = 1, 20
_TENSOR_DIM, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_BYTES = 1, 2, 8, 9
_EMPTY = {_TENSOR_DIM, _TENSOR_TYPE, _TENSOR_NAME, 12}  # all fields of a tensor without numbers; 12 is a remark
_VALUE_NAME, _VALUE_TYPE = 1, 2


def encode_graph(
    operations: Iterable[Operation],
    weights: Mapping[str, npt.NDArray[Any]],
    shape: Sequence[int],
    *,
    kind: str = "float32",
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return the ONNX graph of operations, without the numbers of its weights.

    Args:
        operations: From the value named `INPUT` to the value named `OUTPUT`.
        weights: Name, type and shape of each weight; only those that an operation takes become initializers.
        shape: Of one sample of the input, without the batch.
        kind: Type of the numbers of the input.
        metadata: Texts to keep in the file, by name.
    """
    listed = list(operations)
    used = {name for operation in listed for name in operation.inputs}
    graph = b"".join(_message(_GRAPH_NODE, _node(operation)) for operation in listed)
    graph += _text(_GRAPH_NAME, "siesta")
    for name, array in weights.items():
        if name in used:
            graph += _message(_GRAPH_INITIALIZER, _tensor(name, array))
    graph += _message(_GRAPH_INPUT, _value(INPUT, kind, shape)) + _message(
        _GRAPH_OUTPUT, _value(OUTPUT, "float32", None)
    )
    opset = _number(_OPSET_VERSION, _OPSET)
    texts = (_text(1, name) + _text(2, words) for name, words in metadata.items())
    return b"".join(
        [
            _number(_MODEL_IR_VERSION, _IR_VERSION),
            _message(_MODEL_GRAPH, graph),
            _message(_MODEL_OPSETS, opset),
            *(_message(_MODEL_METADATA, text) for text in texts),
        ]
    )


def fill_graph(graph: bytes, weights: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a graph with weights, given by the names of its initializers; further weights are ignored."""
    parts: list[Bytes] = []
    for field, content in _fields(graph):
        if field == _MODEL_GRAPH:
            inside = list(_filled(_body(content), weights))
            parts += [_start(_MODEL_GRAPH, sum(map(len, inside))), *inside]
        else:
            parts.append(content)
    return b"".join(parts)  # weights are copied once, here


def _filled(graph: bytes, weights: Mapping[str, npt.NDArray[Any]]) -> Iterator[Bytes]:
    """Yield the parts of a graph with the weights in its initializers."""
    for number, content in _fields(graph):
        name = _tensor_name(_body(content)) if number == _GRAPH_INITIALIZER else ""
        if name not in weights:
            yield content
            continue
        array = weights[name]
        numbers = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        head = _tensor(name, array) + _start(_TENSOR_BYTES, len(numbers))
        yield _start(_GRAPH_INITIALIZER, len(head) + len(numbers)) + head
        yield numbers


def weight_names(graph: bytes) -> set[str]:
    """Return the names of the initializers of a graph that have no numbers, so that `fill_graph` has to give them.

    Raises:
        ValueError: These bytes are no graph.
    """
    names: set[str] = set()
    for field, content in _fields(graph):
        if field == _MODEL_GRAPH:
            inside = _fields(_body(content))
            tensors = [_body(each) for number, each in inside if number == _GRAPH_INITIALIZER]
            names |= {_tensor_name(tensor) for tensor in tensors if {field for field, _ in _fields(tensor)} <= _EMPTY}
    return names


# -- messages -----------------------------------------------------------------------------------------------------


def _node(operation: Operation) -> bytes:
    inputs = b"".join(_text(_NODE_INPUT, name) for name in operation.inputs)
    attributes = b"".join(_message(_NODE_ATTRIBUTE, _attribute(*each)) for each in operation.attributes.items())
    return inputs + _text(_NODE_OUTPUT, operation.output) + _text(_NODE_KIND, operation.kind) + attributes


def _attribute(name: str, value: Attribute) -> bytes:
    """Return an AttributeProto; its type says which field has the value."""
    if isinstance(value, float):
        kind, content = 1, _key(2, 5) + struct.pack("<f", value)
    elif isinstance(value, int):
        kind, content = 2, _number(3, value)
    elif isinstance(value, str):
        kind, content = 3, _text(4, value)
    else:
        kind, content = 7, b"".join(_number(8, each) for each in value)
    return _text(_ATTRIBUTE_NAME, name) + content + _number(_ATTRIBUTE_TYPE, kind)


def _tensor(name: str, array: npt.NDArray[Any]) -> bytes:
    """Return a TensorProto without numbers."""
    dims = b"".join(_number(_TENSOR_DIM, length) for length in array.shape)
    return dims + _number(_TENSOR_TYPE, _TYPES[array.dtype.name]) + _text(_TENSOR_NAME, name)


def _value(name: str, kind: str, shape: Sequence[int] | None) -> bytes:
    """Return a ValueInfoProto of numbers of a type: a batch of samples of this shape, or of any."""
    content = _number(1, _TYPES[kind])
    if shape is not None:
        batch = _message(1, _text(2, "batch"))
        content += _message(2, batch + b"".join(_message(1, _number(1, length)) for length in shape))
    return _text(_VALUE_NAME, name) + _message(_VALUE_TYPE, _message(1, content))


def _tensor_name(tensor: bytes) -> str:
    return next((str(_body(content), "utf-8") for field, content in _fields(tensor) if field == _TENSOR_NAME), "")


# -- wire format --------------------------------------------------------------------------------------------------


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each field, and its bytes with key and length."""
    position = 0
    while position < len(message):
        key, end = _read_varint(message, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, end = _read_varint(message, end)
        elif wire_type == _LENGTH:
            length, end = _read_varint(message, end)
            end += length
        elif wire_type in _FIXED:
            end += _FIXED[wire_type]
        else:
            raise ValueError(f"no protobuf field has wire type {wire_type}")
        if end > len(message):
            raise ValueError("a protobuf field is longer than its message")
        yield key >> 3, message[position:end]
        position = end


def _body(field: bytes) -> bytes:
    """Return the content of a field with a length."""
    _, start = _read_varint(field, 0)
    _, start = _read_varint(field, start)
    return field[start:]


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a protobuf number has no end")


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # negative numbers are written as 64 bits
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _number(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _start(field: int, length: int) -> bytes:
    """Return what comes before the content of a field."""
    return _key(field, _LENGTH) + _varint(length)


def _message(field: int, content: bytes) -> bytes:
    return _start(field, len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
