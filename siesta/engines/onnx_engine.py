"""The ONNX Runtime engine, several times as fast as eager torch for single images on a CPU.

Threads that spin while they wait make it slow: those of one session block the other session's. So sessions do not spin.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import onnxruntime

from siesta.contracts import NetworkPart
from siesta.engines.onnx_format import INPUT, fill_graph

__all__ = ["OnnxEngine"]


class OnnxEngine:
    """Run a graph with the weights of a network; ONNX Runtime folds batch norms when the graph is loaded."""

    needs_graph: ClassVar[bool] = True
    cpu_only: ClassVar[bool] = True

    def __init__(self, graph: bytes, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _threads()
        options.log_severity_level = 3  # errors only
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        model = fill_graph(graph, weights)
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._session._model_bytes = None  # kept for a fallback to other providers, of which there are none
        del model
        _return_freed_memory()

    @classmethod
    def load(cls, part: NetworkPart, _device: str) -> Self:
        """Fill the graph with the weights."""
        return cls(part.graph, part.weights)

    def run(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """A batch of images or latents -> the network's output."""
        output: npt.NDArray[np.float32]
        (output,) = self._session.run(None, {INPUT: np.ascontiguousarray(inputs)})
        return output


def _return_freed_memory() -> None:
    """Return what loading has freed, several times the weights, to the kernel; do nothing without glibc."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def _threads() -> int:
    """Return how many threads torch uses, if it is loaded; else OMP_NUM_THREADS, as torch does, or one a processor."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
