"""ONNX graphs, without weights, of networks that other packages add: exported by torch once for each input shape.

torch's exporter takes seconds. So the few kilobytes of structure are cached (in memory, in the user's cache folder, in
each learner), and a sleep never exports. The network that is exported is a copy with a different number in every
element, so that the exporter merges no two tensors. Every tensor of the network must be in the graph, and the graph
must compute correctly with weights other than those it was exported with. The graphs of siesta's own networks are put
together from their structures instead, see `backbones.structure`.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import logging
import warnings
from functools import lru_cache

import onnxruntime
import torch
from torch import nn

from siesta.engines.onnx_format import INPUT, OUTPUT, fill_graph, weight_names
from siesta.errors import SiestaError
from siesta.files import cache_folder, replace_file

__all__ = ["export_graph"]

_COUNTER = "num_batches_tracked"  # of batch norms; no network computes with it
_VERSION = 5  # increment when graphs of older versions must not be used


def export_graph(network: nn.Module, shape: tuple[int, ...]) -> bytes:
    """Return the graph of a network in eval mode for inputs (B, *shape) with any B; exported once, then cached."""
    weights = [(name, *tensor.shape) for name, tensor in network.state_dict().items()]
    description = f"{_VERSION} {torch.__version__} {shape} {network} {weights}"
    key = hashlib.sha256(description.encode()).hexdigest()[:32]
    return _cached_graph(key, _ExportRequest(network, shape))


class _ExportRequest:
    """What to export on a cache miss. All requests compare equal, so that `lru_cache` distinguishes keys only."""

    def __init__(self, network: nn.Module, shape: tuple[int, ...]) -> None:
        self.network, self.shape = network, shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ExportRequest)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=64)
def _cached_graph(key: str, request: _ExportRequest) -> bytes:
    file = cache_folder("graphs") / f"{key}.onnx"
    with contextlib.suppress(OSError, ValueError):
        graph = file.read_bytes()
        if weight_names(graph):
            return graph
    graph = _export_verified(request.network, request.shape)
    with contextlib.suppress(OSError, SiestaError):  # without a cache, exporting is only slower
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, graph)
    return graph


def _with_random_weights(network: nn.Module, seed: int) -> nn.Module:
    """Return a copy on the CPU with a different number in every element."""
    copied = copy.deepcopy(network).cpu().eval()
    generator = torch.Generator().manual_seed(seed)
    for tensor in copied.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_((torch.rand(tensor.shape, generator=generator) + 0.5) / max(tensor[0].numel(), 1) ** 0.5)
    return copied


def _export_verified(network: nn.Module, shape: tuple[int, ...]) -> bytes:
    """Export the graph, and verify it with weights other than those it was exported with."""
    graph = _export(_with_random_weights(network, seed=0), shape)
    if graph is not None and _computes_the_same(graph, _with_random_weights(network, seed=1), shape):
        return graph
    raise RuntimeError(f"torch.onnx.export does not keep the weights of {network} apart")


def _export(network: nn.Module, shape: tuple[int, ...]) -> bytes | None:
    """Return the graph without weights, or None when a tensor of the network is not in it."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)  # it logs every optional library that is missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network,
                (torch.zeros(2, *shape),),
                dynamo=True,
                optimize=False,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                input_names=[INPUT],
                output_names=[OUTPUT],
                verbose=False,
            )
            if program is None:
                return None
            _fold_constants(program)
    finally:
        exporter.setLevel(level)
    model = program.model_proto
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, tensor in network.state_dict().items():
        if name.endswith(_COUNTER):
            continue
        if name not in initializers or list(initializers[name].dims) != list(tensor.shape):
            return None
        initializers[name].ClearField("raw_data")
    return bytes(model.SerializeToString())


def _fold_constants(program: torch.onnx.ONNXProgram) -> None:
    """Optimise the graph with its weights declared as inputs, so that only what depends on no weight is precomputed.

    Without this, a graph with group norms has hundreds of small nodes, and its convolutions run at half their speed
    because ONNX Runtime cannot see that their bias is constant. With the weights as constants, the optimiser would
    fold some of them into the graph.
    """
    graph = program.model.graph
    weights = dict(graph.initializers)
    input_count = len(graph.inputs)
    graph.initializers.clear()
    graph.inputs.extend(weights.values())
    program.optimize()
    del graph.inputs[input_count:]
    graph.initializers.update(weights)


@torch.no_grad()
def _computes_the_same(graph: bytes, network: nn.Module, shape: tuple[int, ...]) -> bool:
    """Return whether the graph, filled with the weights of the network, computes the same as the network."""
    inputs = torch.rand(3, *shape, generator=torch.Generator().manual_seed(2))
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    session = onnxruntime.InferenceSession(fill_graph(graph, weights), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {INPUT: inputs.numpy()})
    expected = network(inputs)
    return bool((torch.from_numpy(output) - expected).abs().max() <= 1e-4 * expected.abs().max())
