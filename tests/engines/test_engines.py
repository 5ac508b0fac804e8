"""Every engine computes what torch computes, for every backbone, any batch."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

from siesta.backbones import BACKBONES, make_backbone
from siesta.contracts import Engine
from siesta.engines import ENGINES, choose_engine, folded, graph_of, make_engine
from siesta.engines.graphs import filled
from siesta.errors import BadInput

CPU = torch.device("cpu")
SIZE = 64


def network_of(name: str) -> nn.Sequential:
    backbone = make_backbone(name, weights="published" if name == "efficientnet_lite0" else "random")
    _shake(backbone.top)
    return backbone.top


def _shake(network: nn.Module) -> None:
    """Statistics and affine parts that are not one and zero, so that a mistake in folding shows."""
    generator = torch.Generator().manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
            module.weight.data *= 1 + 0.2 * torch.rand(module.weight.shape, generator=generator)
            module.bias.data += 0.1 * torch.rand(module.bias.shape, generator=generator)
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean += 0.1 * torch.rand(module.running_mean.shape, generator=generator)  # type: ignore


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("engine", ENGINES)
def test_bottom_and_top_agree_with_torch(name: str, engine: str) -> None:
    backbone = make_backbone(name, weights="published" if name == "efficientnet_lite0" else "random")
    shape = backbone.latent_shape(SIZE)
    parts = {(3, SIZE, SIZE): backbone.bottom, shape: network_of(name)}
    for inputs, network in parts.items():
        running = make_engine(engine, network, graph_of(folded(network), inputs), CPU)
        assert isinstance(running, Engine)
        for batch in (1, 3):
            x = torch.rand(batch, *inputs, generator=torch.Generator().manual_seed(batch)) * 2 - 1
            with torch.no_grad():
                assert relative(running.run(x), network(x)) < 1e-4


@pytest.mark.parametrize("name", BACKBONES)
def test_a_folded_network_computes_the_same_without_batch_norms(name: str) -> None:
    network = network_of(name)
    quick = folded(network)
    x = torch.rand(2, *make_backbone(name, weights="random").latent_shape(SIZE))
    with torch.no_grad():
        assert relative(quick(x), network(x)) < 1e-4
    assert not any(isinstance(module, nn.BatchNorm2d) for module in quick.modules())
    assert not any(hasattr(module, "plain") for module in quick.modules())


WHOLE = [(name, 0) for name in BACKBONES]  # every layer there is
ABOVE = [pytest.param(name, cut, marks=pytest.mark.slow) for name, recipe in BACKBONES.items() for cut in recipe.cuts]


@pytest.mark.parametrize(("name", "cut"), [*WHOLE, *ABOVE])
def test_a_graph_holds_no_weights_of_its_own(name: str, cut: int) -> None:
    """Exported from fresh weights, many of them equal, it computes right for any others."""
    backbone = make_backbone(name, cut, weights="random")
    shape = backbone.latent_shape(32)
    graph = graph_of(folded(backbone.top), shape)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for tensor in backbone.top.state_dict().values():
            if tensor.is_floating_point():
                tensor.mul_(1 + 0.5 * torch.rand(tensor.shape, generator=generator))
                tensor.add_(0.05 * torch.rand(tensor.shape, generator=generator))
        x = torch.rand(2, *shape, generator=generator)
        assert relative(make_engine("onnx", backbone.top, graph, CPU).run(x), backbone.top(x)) < 1e-4


@pytest.mark.parametrize("name", ["mobilenet_v3_large", "resnet18_gn"])
def test_a_graph_with_group_norms_is_simplified(name: str) -> None:
    """All that a convolution needs is constant, or ONNX Runtime has no quick kernel for it."""
    backbone = make_backbone(name, weights="random")
    graph = onnx.load_model_from_string(graph_of(folded(backbone.top), backbone.latent_shape(SIZE))).graph
    constant = {tensor.name for tensor in graph.initializer}
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    assert convolutions and all(constant.issuperset(node.input[1:]) for node in convolutions)
    assert not {"CastLike", "Constant", "Expand", "Range"} & {node.op_type for node in graph.node}


def test_a_graph_is_made_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from siesta.engines import graphs

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graphs._remembered.cache_clear()
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Flatten())
    first = graph_of(network, (3, 5, 5))
    (file,) = (tmp_path / "siesta" / "graphs").iterdir()
    monkeypatch.setattr(graphs, "_exported", lambda *_: pytest.fail("exported twice"))
    graphs._remembered.cache_clear()
    assert graph_of(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Flatten()), (3, 5, 5)) == first == file.read_bytes()
    assert len(first) < len(filled(first, network.state_dict()))
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for damaged in (b"\xff\xff rubbish", b""):
        file.write_bytes(damaged)
        graphs._remembered.cache_clear()
        assert len(graph_of(network, (3, 5, 5))) == len(first), "a damaged cache is made anew"


@pytest.mark.parametrize("name", BACKBONES)
def test_without_the_last_activation_it_is_another_graph(name: str) -> None:
    plain, linear = (make_backbone(name, weights="random", linear=flag) for flag in (False, True))
    shape = plain.latent_shape(32)
    graphs = [graph_of(folded(backbone.top), shape) for backbone in (plain, linear)]
    assert graphs[0] != graphs[1]
    x = torch.rand(2, *shape) * 4 - 2
    for backbone, graph in zip((plain, linear), graphs, strict=True):
        with torch.no_grad():
            assert relative(make_engine("onnx", backbone.top, graph, CPU).run(x), backbone.top(x)) < 1e-4


def test_a_cache_that_cannot_be_written_is_only_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from siesta.engines import graphs

    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    graphs._remembered.cache_clear()
    assert graph_of(nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten()), (3, 2, 2))


def test_the_engine_fits_the_device() -> None:
    assert choose_engine(None, CPU) == "onnx" and choose_engine(None, torch.device("cuda")) == "torch"
    assert choose_engine("torch", CPU) == "torch"
    with pytest.raises(BadInput, match="there is no engine 'tpu'"):
        choose_engine("tpu", CPU)
    with pytest.raises(BadInput, match="on the CPU only"):
        choose_engine("onnx", torch.device("cuda"))
