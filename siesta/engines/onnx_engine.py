"""The ONNX Runtime engine, several times as fast as eager torch for single images on a CPU.

Threads that spin while they wait make it slow: those of one session block the other session's. So sessions do not spin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state

from siesta.contracts import NetworkPart
from siesta.engines.onnx_format import INPUT, OUTPUT

__all__ = ["OnnxEngine"]


class OnnxEngine:
    """Run an ONNX model.

    A session of the package keeps the model's bytes while it is optimised, which are as large as the weights; so it is
    made in two steps.
    """

    needs_graph: ClassVar[bool] = True
    cpu_only: ClassVar[bool] = True

    def __init__(self, make_model: Callable[[], bytes]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _threads()
        options.log_severity_level = 3  # errors only
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        model = make_model()
        self._session = onnxruntime_pybind11_state.InferenceSession(options, model, False, False)
        del model
        self._session.initialize_session(["CPUExecutionProvider"], [{}], set())

    @classmethod
    def load(cls, part: NetworkPart, _device: str) -> Self:
        """Run the ONNX model of the part."""
        return cls(part.model)

    def run(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """A batch of images or latents -> the network's output."""
        output: npt.NDArray[np.float32]
        (output,) = self._session.run([OUTPUT], {INPUT: np.ascontiguousarray(inputs)}, None)
        return output


def _threads() -> int:
    """Return how many threads torch uses, if it is loaded; else OMP_NUM_THREADS, as torch does, or one a processor."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
