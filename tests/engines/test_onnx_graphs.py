"""Graphs that torch exports hold no weights, compute right with any weights, and are exported once."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from siesta.backbones.arrays import state_arrays
from siesta.backbones.layers import StandardisedConv2d
from siesta.engines import OnnxEngine, onnx_graphs
from siesta.engines.onnx_format import fill_graph
from siesta.engines.onnx_graphs import export_graph
from tests.engines.networks import inputs_for, relative_difference, torch_output


def agrees(graph: bytes, network: nn.Module, shape: tuple[int, ...]) -> bool:
    x = inputs_for(shape, batch=2)
    output = OnnxEngine(lambda: fill_graph(graph, state_arrays(network))).run(x)
    return relative_difference(output, torch_output(network, x)) < 1e-4


class Scale(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def network_with_norms(seed: int) -> nn.Sequential:
    """Return a network of another package, with every kind of norm."""
    torch.manual_seed(seed)
    convolutions = [nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), StandardisedConv2d(8, 8, 1), nn.GroupNorm(2, 8)]
    network = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(32, 4), nn.LayerNorm(4), Scale(4))
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)
    return network.eval()


def test_a_graph_computes_right_with_any_weights() -> None:
    graph = export_graph(network_with_norms(0), (3, 4, 4))
    for seed in (1, 2):
        assert agrees(graph, network_with_norms(seed), (3, 4, 4))


def test_a_graph_is_simplified() -> None:
    graph = onnx.load_model_from_string(export_graph(network_with_norms(0), (3, 4, 4))).graph
    assert not {"CastLike", "Expand", "Range"} & {node.op_type for node in graph.node}


def small_network(channels: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, channels, 1), nn.ReLU(), nn.Flatten())


def forget_graphs_in_memory() -> None:
    onnx_graphs._cached_graph.cache_clear()  # as in a new process


def test_a_graph_is_exported_once_and_read_from_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget_graphs_in_memory()
    network = small_network()
    first = export_graph(network, (3, 5, 5))
    (file,) = (tmp_path / "siesta" / "graphs").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(torch.onnx, "export", lambda *_args, **_options: pytest.fail("exported twice"))
        assert export_graph(small_network(), (3, 5, 5)) == first, "from memory"
        forget_graphs_in_memory()
        assert export_graph(small_network(), (3, 5, 5)) == first == file.read_bytes(), "from the file"
    assert len(first) < len(fill_graph(first, state_arrays(network)))
    for damaged in (b"\xff\xff rubbish", b""):
        file.write_bytes(damaged)
        forget_graphs_in_memory()
        assert len(export_graph(network, (3, 5, 5))) == len(first), "a damaged file is replaced"


def test_networks_that_differ_in_the_shape_of_a_tensor_only_have_graphs_of_their_own() -> None:
    one, five = Scale(1), Scale(5)
    assert str(one) == str(five)
    for network in (one, five):
        assert agrees(export_graph(network, (3, 2, 5)), network, (3, 2, 5))


def test_a_cache_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert export_graph(small_network(channels=2), (3, 2, 2))


def test_a_network_with_a_weight_that_is_not_exported_is_refused() -> None:
    class WithUnusedWeight(nn.Module):
        """The exporter drops its weight."""

        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    with pytest.raises(RuntimeError, match="does not keep the weights of"):
        export_graph(WithUnusedWeight(), (3, 2, 2))
