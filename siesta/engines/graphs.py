"""Networks as ONNX graphs without weights: exported once for a shape, filled with weights when they are used.

torch's exporter takes seconds, filling takes milliseconds; so the few kilobytes of structure are kept (in memory, in
the user's cache folder, in each learner), and a sleep never exports. Networks are folded first, so that nothing is
left that an optimiser could bake into the structure.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import numpy_helper
from torch import Tensor, nn

__all__ = ["INPUT", "OUTPUT", "filled", "graph_of"]

INPUT, OUTPUT = "input", "output"
_VERSION = 1  # goes up when graphs made before must not be used


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
        onnx.load_model_from_string(graph)
        return graph
    graph = _exported(export.network, export.shape)
    with contextlib.suppress(OSError):  # a cache that cannot be written is only slower
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as partial:
            partial.write(graph)
        Path(partial.name).rename(file)
    return graph


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "siesta" / "graphs"


def _exported(network: nn.Module, shape: tuple[int, int, int]) -> bytes:
    example = torch.zeros(2, *shape, device=next(network.parameters()).device)
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)  # it mentions every library that it could have used
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network.eval(),
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                input_names=[INPUT],
                output_names=[OUTPUT],
                verbose=False,
            )
    finally:
        exporter.setLevel(level)
    if program is None:
        raise RuntimeError("torch.onnx.export gave no program")
    model: onnx.ModelProto = program.model_proto
    known = network.state_dict()
    for tensor in model.graph.initializer:
        if tensor.name in known:
            tensor.ClearField("raw_data")
    return bytes(model.SerializeToString())


def filled(graph: bytes, weights: Mapping[str, Tensor]) -> bytes:
    """The graph with its tensors taken from a state dict of the same network."""
    model = onnx.load_model_from_string(graph)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name].detach().cpu().numpy(), tensor.name))
    return bytes(model.SerializeToString())
