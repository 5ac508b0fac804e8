"""Networks as ONNX graphs without weights: exported once for a shape, filled with weights when they are used.

torch's exporter takes seconds, filling takes milliseconds; so the few kilobytes of structure are kept (in memory, in
the user's cache folder, in each learner), and a sleep never exports. What is exported is a copy with a number of its
own in every place, so that no two tensors are merged; every tensor of the network must be found again in the graph,
and the graph must compute right with other weights than those it was exported with.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import logging
import os
import tempfile
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import onnx
import onnxruntime
import torch
from google.protobuf.message import DecodeError
from onnx import numpy_helper
from torch import Tensor, nn

__all__ = ["INPUT", "OUTPUT", "filled", "graph_of"]

INPUT, OUTPUT = "input", "output"
_VERSION = 4  # goes up when graphs made before must not be used


def graph_of(network: nn.Module, shape: tuple[int, int, int]) -> bytes:
    """The structure of a network in eval mode for inputs (B, *shape), any B; made once, then remembered."""
    words = f"{_VERSION} {torch.__version__} {shape} {network}"
    key = hashlib.sha256(words.encode()).hexdigest()[:32]
    return _remembered(key, _Export(network, shape))


class _Export:
    """A pending export; all are equal to the cache, which knows them by their key."""

    def __init__(self, network: nn.Module, shape: tuple[int, int, int]) -> None:
        self.network, self.shape = network, shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Export)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=64)
def _remembered(key: str, export: _Export) -> bytes:
    file = _cache_folder() / f"{key}.onnx"
    with contextlib.suppress(OSError, DecodeError):
        graph = file.read_bytes()
        if onnx.load_model_from_string(graph).graph.node:
            return graph
    graph = _exported(export.network, export.shape)
    with contextlib.suppress(OSError):  # a cache that cannot be written is only slower
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            partial = Path(folder) / file.name
            with partial.open("wb") as opened:
                opened.write(graph)
                opened.flush()
                os.fsync(opened.fileno())
            partial.rename(file)
    return graph


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "siesta" / "graphs"


def _stand_in(network: nn.Module, seed: int) -> nn.Module:
    """A copy on the CPU with a different number in every place."""
    copied = copy.deepcopy(network).cpu().eval()
    generator = torch.Generator().manual_seed(seed)
    for tensor in copied.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_((torch.rand(tensor.shape, generator=generator) + 0.5) / max(tensor[0].numel(), 1) ** 0.5)
    return copied


def _exported(network: nn.Module, shape: tuple[int, int, int]) -> bytes:
    """The graph, if it computes right with other weights than its own."""
    graph = _export(_stand_in(network, seed=0), shape)
    if graph is not None and _fits(graph, _stand_in(network, seed=1), shape):
        return graph
    raise RuntimeError(f"torch.onnx.export does not keep the weights of {network} apart")


def _export(network: nn.Module, shape: tuple[int, int, int]) -> bytes | None:
    """The graph without weights; None when a tensor of the network is not in it."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)  # it mentions every library that it could have used
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
            _optimise(program)
    finally:
        exporter.setLevel(level)
    model: onnx.ModelProto = program.model_proto
    places = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, tensor in network.state_dict().items():
        if name not in places or list(places[name].dims) != list(tensor.shape):
            return None
        places[name].ClearField("raw_data")
    return bytes(model.SerializeToString())


def _optimise(program: torch.onnx.ONNXProgram) -> None:
    """Computes once what hangs on no weight; meanwhile the weights are inputs, of which nothing can be known.

    Left as it is, a graph with group norms has hundreds of small nodes, and convolutions whose bias ONNX Runtime does
    not see is constant: they run at half their speed. Optimised with its weights, it has some of them baked in.
    """
    graph = program.model.graph
    weights, given = dict(graph.initializers), len(graph.inputs)
    graph.initializers.clear()
    graph.inputs.extend(weights.values())
    program.optimize()
    del graph.inputs[given:]
    graph.initializers.update(weights)


@torch.no_grad()
def _fits(graph: bytes, network: nn.Module, shape: tuple[int, int, int]) -> bool:
    """Whether the graph, filled with a network's weights, computes what the network does."""
    inputs = torch.rand(3, *shape, generator=torch.Generator().manual_seed(2))
    session = onnxruntime.InferenceSession(filled(graph, network.state_dict()), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {INPUT: inputs.numpy()})
    expected = network(inputs)
    return bool((torch.from_numpy(output) - expected).abs().max() <= 1e-4 * expected.abs().max())


def filled(graph: bytes, weights: Mapping[str, Tensor]) -> bytes:
    """The graph with its tensors taken from a state dict of the same network."""
    model = onnx.load_model_from_string(graph)
    places = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, tensor in weights.items():
        places[name].CopyFrom(numpy_helper.from_array(tensor.detach().cpu().numpy(), name))
    return bytes(model.SerializeToString())
