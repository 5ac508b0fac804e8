"""Ways to run a network that does not learn just now: a frozen bottom, or a top between two sleeps."""

from __future__ import annotations

import torch
from torch import nn

from siesta.contracts import Engine
from siesta.engines.folding import folded
from siesta.engines.graphs import graph_of
from siesta.engines.onnx_engine import OnnxEngine, one_torch_thread
from siesta.engines.torch_engine import TorchEngine
from siesta.errors import BadInput

__all__ = [
    "ENGINES",
    "OnnxEngine",
    "TorchEngine",
    "choose_engine",
    "folded",
    "graph_of",
    "make_engine",
    "one_torch_thread",
]

ENGINES = ("onnx", "torch")


def choose_engine(name: str | None, device: torch.device) -> str:
    """The engine by name, or the one that suits a device: ONNX Runtime on a CPU, torch elsewhere."""
    if name is None:
        return "onnx" if device.type == "cpu" else "torch"
    if name not in ENGINES:
        raise BadInput(f"there is no engine '{name}': choose one of {', '.join(ENGINES)}")
    if name == "onnx" and device.type != "cpu":
        raise BadInput(f"the onnx engine runs on the CPU only: use the torch engine on {device}")
    return name


def make_engine(name: str, network: nn.Module, graph: bytes | None, device: torch.device) -> Engine:
    """An engine for a network; `graph` is its structure, needed by onnx."""
    if name == "torch" or graph is None:
        return TorchEngine(network, device)
    return OnnxEngine(graph, folded(network).state_dict())
