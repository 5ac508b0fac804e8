"""Write the structure of siesta's own networks, and where their published weights are in the files of their packages.

python scripts/network_structures.py

The wake side reads both without torch: the operations of each layer, from which the graph of any cut is put together,
and the name, offset and shape of each tensor in a file with a known SHA-256, so that nothing in the file is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from siesta.backbones import BACKBONES, VECTOR_NETWORKS, BackboneSpec, find_spec
from siesta.backbones.efficientnet_lite import VARIANTS, Variant
from siesta.backbones.layers import (
    BasicBlock,
    Gelu,
    GlobalAveragePool,
    InvertedResidual,
    PlainBlock,
    SamePaddingConv2d,
    SqueezeExcite,
    StandardisedConv2d,
)
from siesta.backbones.published import weights_file
from siesta.backbones.vector_layers import EPSILON, MeanOfVectors, ResidualBlock, UnitScale
from siesta.backbones.vit_layers import Attention, Block, ClassToken, Mlp, PatchEmbedding
from siesta.contracts import Attribute

FOLDER = Path(__file__).parent.parent / "siesta" / "backbones"
STRUCTURES = FOLDER / "structures"
WEIGHTS = FOLDER / "weights"
SIZE = 224  # no structure depends on the size of the image, or the length of vectors


def main() -> None:
    """Write a file for each network, and one for each file of published weights."""
    for folder in (STRUCTURES, WEIGHTS):
        folder.mkdir(exist_ok=True)
    for name in (*BACKBONES.own, *VECTOR_NETWORKS):
        (STRUCTURES / f"{name}.json").write_text(structure_text(structure(name)), "utf-8")
    for name, variant in VARIANTS.items():
        (WEIGHTS / f"{name}.json").write_text(table_text(tensor_table(name, variant)), "utf-8")


def structure_text(content: dict[str, Any]) -> str:
    """Return the JSON of a structure with one operation a line."""
    layers = ",\n\n".join(",\n".join(f" {json.dumps(each)}" for each in layer) for layer in content["layers"])
    layers = layers.replace(",\n\n", "\n], [\n")
    return f'{{"last_activation": {json.dumps(content["last_activation"])}, "layers": [[\n{layers}\n]]}}\n'


def table_text(content: dict[str, Any]) -> str:
    """Return the JSON of a table of tensors with one tensor a line."""
    tensors = ",\n".join(f" {json.dumps(name)}: {json.dumps(place)}" for name, place in content["tensors"].items())
    return f'{{"sha256": "{content["sha256"]}", "tensors": {{\n{tensors}\n}}}}\n'


# -- structures ---------------------------------------------------------------------------------------------------


def structure(name: str) -> dict[str, Any]:
    """Return the operations of each layer of a network, and which of them is its last activation."""
    spec = find_spec(name, size=SIZE)
    network = nn.Sequential(*spec.layers(SIZE))
    layers = [_Layer(spec, network, index) for index in range(len(network))]
    last = next((layer.last for layer in layers if layer.last), None)
    return {"last_activation": last, "layers": [layer.operations for layer in layers]}


class _Layer:
    """The operations of one layer: [kind, inputs, output, attributes].

    Values begin with "%", and "%0" is the input of the layer; all other inputs are names of weights in the layer.

    Attributes:
        operations: In order.
        last: The layer and the output of the last activation of the network, if it is in this layer.
    """

    def __init__(self, spec: BackboneSpec, network: nn.Sequential, index: int) -> None:
        self.operations: list[list[Any]] = []
        self.last: list[Any] | None = None
        layer = network[index]
        self._names = {module: name for name, module in layer.named_modules()}
        self._linear: nn.Module | None = None
        if spec.last_activation is not None and spec.last_activation[0] % len(network) == index:
            self._linear = layer.get_submodule(spec.last_activation[1])
        self._index = index
        self.apply(layer, "%0")

    def add(self, kind: str, *inputs: str, **attributes: Attribute) -> str:
        """Add an operation; return its output."""
        output = f"%{len(self.operations) + 1}"
        self.operations.append([kind, list(inputs), output, attributes])
        return output

    def constant(self, value: float | list[int]) -> str:
        """Return a constant: a float, or a list of integers."""
        if isinstance(value, float):
            return self.add("Constant", value_float=value)
        return self.add("Constant", value_ints=value)

    def weight(self, module: nn.Module, name: str) -> str:
        """Return the name of a weight in the layer."""
        return f"{self._names[module]}.{name}".removeprefix(".")

    def apply(self, module: nn.Module, x: str) -> str:
        """Add the operations of a module on the value x; return its output."""
        kind = next(kind for kind in _KINDS if isinstance(module, kind))
        output = _KINDS[kind](self, module, x)
        if module is self._linear:
            self.last = [self._index, output]
        return output


def _sequential(layer: _Layer, module: Any, x: str) -> str:
    for child in module:
        x = layer.apply(child, x)
    return x


def _conv(layer: _Layer, module: Any, x: str) -> str:
    weight = layer.weight(module, "weight")
    if isinstance(module, StandardisedConv2d):
        weight = _standardised(layer, weight, module.weight)
    bias = [] if module.bias is None else [layer.weight(module, "bias")]
    size, margin = module.kernel_size[0], module.padding[0]
    padding: dict[str, Attribute] = {"pads": [margin] * 4}
    if isinstance(module, SamePaddingConv2d):
        padding = {"auto_pad": "SAME_UPPER"}
    return layer.add(
        "Conv", x, weight, *bias, kernel_shape=[size, size], strides=[*module.stride], group=module.groups, **padding
    )


def _standardised(layer: _Layer, weight: str, tensor: Tensor) -> str:
    """Add the operations of `standardise` on a weight; ONNX Runtime computes them once."""
    axes = layer.constant([1, 2, 3])
    centred = layer.add("Sub", weight, layer.add("ReduceMean", weight, axes))
    norm = layer.add("ReduceL2", centred, axes)
    deviation = layer.add("Div", norm, layer.constant(math.sqrt(tensor[0].numel() - 1)))
    return layer.add("Div", centred, layer.add("Add", deviation, layer.constant(1e-5)))


def _batch_norm(layer: _Layer, module: Any, x: str) -> str:
    names = ("weight", "bias", "running_mean", "running_var")
    return layer.add("BatchNormalization", x, *(layer.weight(module, name) for name in names), epsilon=module.eps)


def _group_norm(layer: _Layer, module: Any, x: str) -> str:
    ones = layer.add("Expand", layer.constant(1.0), layer.constant([module.num_groups]))
    zeros = layer.add("Expand", layer.constant(0.0), layer.constant([module.num_groups]))
    groups = layer.add("Reshape", x, layer.constant([0, module.num_groups, -1]))
    normal = layer.add("InstanceNormalization", groups, ones, zeros, epsilon=module.eps)
    channels = layer.constant([1, 2])
    scale, shift = (layer.add("Unsqueeze", layer.weight(module, name), channels) for name in ("weight", "bias"))
    normal = layer.add("Reshape", normal, layer.add("Shape", x))
    return layer.add("Add", layer.add("Mul", normal, scale), shift)


def _layer_norm(layer: _Layer, module: Any, x: str) -> str:
    weight, bias = layer.weight(module, "weight"), layer.weight(module, "bias")
    return layer.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=module.eps)


def _linear(layer: _Layer, module: Any, x: str) -> str:
    weight = layer.add("Transpose", layer.weight(module, "weight"), perm=[1, 0])
    return layer.add("Add", layer.add("MatMul", x, weight), layer.weight(module, "bias"))


def _relu6(layer: _Layer, _module: Any, x: str) -> str:
    return layer.add("Clip", x, layer.constant(0.0), layer.constant(6.0))


def _max_pool(layer: _Layer, module: Any, x: str) -> str:
    size, stride, margin = module.kernel_size, module.stride, module.padding
    return layer.add("MaxPool", x, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[margin] * 4)


def _pool(layer: _Layer, _module: Any, x: str) -> str:
    return layer.add("Flatten", layer.add("GlobalAveragePool", x), axis=1)


def _squeeze_excite(layer: _Layer, module: SqueezeExcite, x: str) -> str:
    gate = layer.add("GlobalAveragePool", x)
    for child in (module.reduce, module.activation, module.expand):
        gate = layer.apply(child, gate)
    return layer.add("Mul", x, layer.add("HardSigmoid", gate, alpha=1 / 6, beta=0.5))


def _inverted_residual(layer: _Layer, module: InvertedResidual, x: str) -> str:
    out = layer.apply(module.body, x)
    return layer.add("Add", out, x) if module.residual else out


def _basic_block(layer: _Layer, module: BasicBlock, x: str) -> str:
    total = layer.add("Add", layer.apply(module.body, x), layer.apply(module.shortcut, x))
    return layer.apply(module.activation, total)


def _plain_block(layer: _Layer, module: PlainBlock, x: str) -> str:
    skipped = x
    if module.added:
        first, last, step = layer.constant([0, 0]), layer.constant([2**31, 2**31]), layer.constant([module.stride] * 2)
        skipped = layer.add("Slice", x, first, last, layer.constant([2, 3]), step)
        skipped = layer.add("Pad", skipped, layer.constant([0, 0, 0, 0, 0, module.added, 0, 0]))
    return layer.apply(module.activation, layer.add("Add", layer.apply(module.body, x), skipped))


def _patches(layer: _Layer, module: PatchEmbedding, x: str) -> str:
    width = module.proj.out_channels
    patches = layer.add("Reshape", layer.apply(module.proj, x), layer.constant([0, width, -1]))
    patches = layer.add("Transpose", patches, perm=[0, 2, 1])
    batch = layer.add("Shape", x, start=0, end=1)
    shape = layer.add("Concat", batch, layer.constant([1, width]), axis=0)
    tokens = layer.add("Concat", layer.add("Expand", "cls_token", shape), patches, axis=1)
    return layer.add("Add", tokens, "pos_embed")


def _attention(layer: _Layer, module: Attention, x: str) -> str:
    width = module.proj.in_features
    heads = layer.add("Reshape", layer.apply(module.qkv, x), layer.constant([0, 0, 3, module.heads, -1]))
    by_part = layer.add("Transpose", heads, perm=[2, 0, 3, 1, 4])  # (3, B, h, N, d / h)
    queries, keys, values = (
        layer.add("Squeeze", layer.add("Slice", by_part, *_range(layer, part)), layer.constant([0]))
        for part in range(3)
    )
    scale = layer.constant((width // module.heads) ** -0.5)
    scores = layer.add("MatMul", layer.add("Mul", queries, scale), layer.add("Transpose", keys, perm=[0, 1, 3, 2]))
    attended = layer.add("MatMul", layer.add("Softmax", scores, axis=3), values)
    joined = layer.add("Reshape", layer.add("Transpose", attended, perm=[0, 2, 1, 3]), layer.constant([0, 0, width]))
    return layer.apply(module.proj, joined)


def _range(layer: _Layer, part: int) -> tuple[str, str, str]:
    """Return start, end and axis of one element of the first axis."""
    return layer.constant([part]), layer.constant([part + 1]), layer.constant([0])


def _mlp(layer: _Layer, module: Mlp, x: str) -> str:
    return layer.apply(module.fc2, layer.add("Gelu", layer.apply(module.fc1, x)))


def _block(layer: _Layer, module: Block, x: str) -> str:
    x = layer.add("Add", x, layer.apply(module.attn, layer.apply(module.norm1, x)))
    return layer.add("Add", x, layer.apply(module.mlp, layer.apply(module.norm2, x)))


def _class_token(layer: _Layer, module: ClassToken, x: str) -> str:
    first = layer.add("Slice", x, layer.constant([0]), layer.constant([1]), layer.constant([1]))
    return layer.apply(module.norm, layer.add("Squeeze", first, layer.constant([1])))


def _unit_scale(layer: _Layer, _module: Any, x: str) -> str:
    mean_square = layer.add("ReduceMean", layer.add("Mul", x, x), layer.constant([2]))
    return layer.add("Div", x, layer.add("Sqrt", layer.add("Add", mean_square, layer.constant(EPSILON))))


def _residual_block(layer: _Layer, module: ResidualBlock, x: str) -> str:
    hidden = layer.add("Gelu", layer.apply(module.fc1, x))
    return layer.add("Add", x, layer.apply(module.fc2, hidden))


def _mean_of_vectors(layer: _Layer, _module: Any, x: str) -> str:
    return layer.add("ReduceMean", x, layer.constant([1]), keepdims=0)


def _named(kind: str) -> Callable[[_Layer, Any, str], str]:
    """Return the function for a module that is one operation without attributes."""
    return lambda layer, _module, x: layer.add(kind, x)


_KINDS: dict[type[nn.Module], Callable[[_Layer, Any, str], str]] = {
    nn.Sequential: _sequential,
    nn.Conv2d: _conv,
    nn.BatchNorm2d: _batch_norm,
    nn.GroupNorm: _group_norm,
    nn.LayerNorm: _layer_norm,
    nn.Linear: _linear,
    nn.ReLU6: _relu6,
    nn.ReLU: _named("Relu"),
    nn.Hardswish: _named("HardSwish"),
    Gelu: _named("Gelu"),
    nn.Identity: lambda _layer, _module, x: x,
    nn.MaxPool2d: _max_pool,
    GlobalAveragePool: _pool,
    SqueezeExcite: _squeeze_excite,
    InvertedResidual: _inverted_residual,
    BasicBlock: _basic_block,
    PlainBlock: _plain_block,
    PatchEmbedding: _patches,
    Attention: _attention,
    Mlp: _mlp,
    Block: _block,
    ClassToken: _class_token,
    UnitScale: _unit_scale,
    ResidualBlock: _residual_block,
    MeanOfVectors: _mean_of_vectors,
}


# -- published weights --------------------------------------------------------------------------------------------


def tensor_table(name: str, variant: Variant) -> dict[str, Any]:
    """Return the SHA-256 of a file of published weights, and our name, offset and shape of each tensor in it.

    Both the file and the network list their tensors in the order of the forward pass.
    """
    file = weights_file(name, variant.package, variant.weights)
    data = file.read_bytes()
    state: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    network = nn.Sequential(*BACKBONES[name].layers(SIZE))
    published = [tensor for other, tensor in state.items() if not other.startswith("_fc.")]
    tensors = dict(zip(network.state_dict(), published, strict=True))
    tensors |= {other: tensor for other, tensor in state.items() if other.startswith("_fc.")}
    table = {ours: _place(data, tensor) for ours, tensor in tensors.items()}
    return {"sha256": hashlib.sha256(data).hexdigest(), "tensors": table}


def _place(data: bytes, tensor: Tensor) -> list[Any]:
    """Return where a tensor is in a file: type, offset, shape in memory, and the axes that it is transposed with.

    The number in front of its bytes is that of its elements.
    """
    strides = tensor.stride()
    in_memory = sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis))
    stored = tensor.permute(in_memory).contiguous().numpy()
    count = tensor.numel().to_bytes(8, "little")
    position = data.find(count + stored.tobytes())
    if position < 0:
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} is not in the file as it was read")
    axes = [in_memory.index(axis) for axis in range(tensor.dim())]
    return [stored.dtype.name, position + len(count), list(stored.shape), axes]


if __name__ == "__main__":
    main()
