"""ONNX Runtime's engine: inputs in any memory layout, its weights, and its threads."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from siesta.contracts import Operation
from siesta.engines import OnnxEngine
from siesta.engines.onnx_engine import _threads
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph

WEIGHTS = {"weight": np.random.default_rng(0).standard_normal((2, 3, 1, 1)).astype(np.float32)}
X = np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)
EXPECTED = np.einsum("bchw,kc->bkhw", X, WEIGHTS["weight"][:, :, 0, 0])


def engine() -> OnnxEngine:
    convolution = Operation("Conv", (INPUT, "weight"), OUTPUT)
    return OnnxEngine(lambda: fill_graph(encode_graph([convolution], WEIGHTS, (3, 4, 5)), WEIGHTS))


def test_inputs_may_be_in_any_memory_layout() -> None:
    turned = np.ascontiguousarray(X.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for inputs in (X, turned):
        np.testing.assert_allclose(engine().run(inputs), EXPECTED, rtol=1e-5, atol=1e-6)


def test_it_keeps_the_weights_that_it_was_made_with() -> None:
    weights = {"weight": WEIGHTS["weight"].copy()}
    convolution = Operation("Conv", (INPUT, "weight"), OUTPUT)
    made = OnnxEngine(lambda: fill_graph(encode_graph([convolution], weights, (3, 4, 5)), weights))
    weights["weight"][:] = 0
    np.testing.assert_allclose(made.run(X), EXPECTED, rtol=1e-5, atol=1e-6)


def test_it_has_as_many_threads_as_torch_or_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert _threads() == 2
    finally:
        torch.set_num_threads(threads)
    monkeypatch.delitem(sys.modules, "torch")
    for given, expected in (("3", 3), ("", None), ("many", None), ("0", None)):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        assert _threads() == expected if expected else _threads() >= 1
