"""torch's engine runs a network in eval mode, without gradients."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from siesta import BadInput
from siesta.contracts import NetworkPart
from siesta.engines import TorchEngine


def test_it_runs_in_eval_mode_without_gradients() -> None:
    network = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.9)).train()
    engine = TorchEngine.load(NetworkPart(bytes, lambda: network), "cpu")
    x = np.random.default_rng(0).random((2, 3, 4, 4)).astype(np.float32)
    output = engine.run(x)
    assert not network.training
    np.testing.assert_allclose(output, x / (1 + 1e-5) ** 0.5, rtol=1e-6)


def test_inputs_may_be_read_only() -> None:
    """torch would warn, and warnings are errors in tests."""
    x = np.frombuffer(np.arange(12, dtype=np.float32).tobytes(), np.float32).reshape(1, 3, 2, 2)
    assert np.array_equal(TorchEngine(nn.Identity(), "cpu").run(x), x)


def test_without_torch_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siesta.extras._is_installed", lambda _module: False)
    with pytest.raises(BadInput, match=r"the torch engine needs torch, .*: pip install 'siesta-learn\[sleep\]'"):
        TorchEngine.load(NetworkPart(bytes, nn.Identity), "cpu")
