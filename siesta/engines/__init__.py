"""Engines run a network for inference: the frozen bottom, or the top between two sleeps."""

from __future__ import annotations

from siesta.contracts import Engine
from siesta.engines.onnx_engine import OnnxEngine
from siesta.engines.torch_engine import TorchEngine
from siesta.errors import BadInput
from siesta.registry import Registry, class_of

__all__ = ["ENGINES", "OnnxEngine", "TorchEngine", "choose_engine"]

ENGINES: Registry[type[Engine]] = Registry(
    "engine", {"onnx": OnnxEngine, "torch": TorchEngine}, group="siesta.engines", requirement=class_of(Engine)
)


def choose_engine(name: str | None, device: str) -> str:
    """Return the engine name if it can run on the device; for None, onnx on a CPU and torch on other devices."""
    if name is None:
        return "onnx" if device == "cpu" else "torch"
    if ENGINES[name].cpu_only and device != "cpu":
        raise BadInput(f"the {name} engine runs on the CPU only: use the torch engine on {device}")
    return name
