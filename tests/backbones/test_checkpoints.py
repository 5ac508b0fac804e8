"""Weights from files in every layout, and every fault that a file can have.

`names/<backbone>-<layout>.txt` lists name and shape of each tensor as the other project writes them, in its order,
which is the order in which data passes: so files are made here without asking our own tables of names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.backbones.checkpoints import load_weights
from siesta.contracts import Backbone
from siesta.errors import BadInput

NAMES = Path(__file__).parent / "names"
LAYOUTS = sorted(file.stem for file in NAMES.glob("*.txt"))
OUTPUTS = ("classifier.1.", "classifier.3.", "classifier.weight", "classifier.bias", "fc.")
Tensors = dict[str, Tensor]


def backbone_with_random_norms(name: str) -> Backbone:
    """Random weights, and norms as if they had seen data."""
    backbone, seeded = make_backbone(name, weights=RANDOM), torch.Generator().manual_seed(1)
    for part in (backbone.bottom, backbone.top):
        for tensor_name, tensor in part.state_dict().items():
            if tensor.dim() == 1 and not tensor_name.endswith("centre"):
                positive = tensor_name.endswith(("weight", "running_var"))
                tensor.copy_(torch.rand(tensor.shape, generator=seeded) + (0.5 if positive else -0.5))
    return backbone


def features(backbone: Backbone) -> Tensor:
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found: Tensor = backbone.top(backbone.bottom(images))
    return found


def in_layout(backbone: Backbone, layout: str) -> Tensors:
    """The tensors of a backbone under the names, and in the shapes, of another project."""
    state = [*backbone.bottom.state_dict().items(), *backbone.top.state_dict().items()]
    values = iter([tensor for name, tensor in state if not name.endswith(("num_batches_tracked", "centre"))])
    theirs: Tensors = {}
    for line in (NAMES / f"{layout}.txt").read_text().splitlines():
        name, shape = line.split()
        sizes = [int(size) for size in shape.split("x")]
        is_output = any(output in name for output in OUTPUTS)
        theirs[name] = torch.zeros(sizes) if is_output else next(values).reshape(sizes).clone()
        if name.endswith("running_var"):
            theirs[name.replace("running_var", "num_batches_tracked")] = torch.tensor(7)
    assert not list(values)
    return theirs


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_of_another_project_gives_the_same_network(layout: str, tmp_path: Path) -> None:
    name = layout.split("-")[0]
    source = backbone_with_random_norms(name)
    tensors = in_layout(source, layout)
    torch.save(tensors, tmp_path / "weights.pth")
    save_file(tensors, tmp_path / "weights.safetensors")
    if layout == "mobilenet_v3_large_plain-timm":  # timm's batch norm has torch's own epsilon there
        for module in (*source.bottom.modules(), *source.top.modules()):
            if isinstance(module, nn.BatchNorm2d):
                module.eps = 1e-5
    expected = features(source)
    assert expected.std() > 1e-3
    for file in tmp_path.iterdir():
        loaded = make_backbone(name, weights=file)
        torch.testing.assert_close(features(loaded), expected, rtol=1e-3, atol=1e-4 * expected.abs().max().item())
        outputs = [tensor for tensor in tensors if any(output in tensor for output in OUTPUTS)]
        assert sorted(loaded.ignored) == sorted(outputs) and len(outputs) in (2, 3)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda tensors: {"state_dict": tensors, "epoch": 3},
        lambda tensors: {"model": tensors, "epoch": 3},
        lambda tensors: {"model_state": {f"module.{name}": tensor for name, tensor in tensors.items()}, "epoch": 3},
        lambda tensors: {**{name.removeprefix("model."): tensor for name, tensor in tensors.items()}, "epoch": 3},
    ],
)
def test_wrapped_files_are_read(wrapped: Callable[[Tensors], dict[str, Any]], tmp_path: Path) -> None:
    source = backbone_with_random_norms("mobilenet_v3_large")
    torch.save(wrapped(in_layout(source, "mobilenet_v3_large-reference")), tmp_path / "swav.pth")
    loaded = make_backbone("mobilenet_v3_large", weights=str(tmp_path / "swav.pth"))
    assert torch.equal(features(loaded), features(source))
    endings = ("classifier.3.weight", "classifier.3.sigma", "classifier.3.bias", "epoch")
    assert all(name.endswith(end) for name, end in zip(loaded.ignored, endings, strict=True))


@pytest.mark.parametrize("name", ["mobilenet_v3_large", "mobilenet_v2", "resnet18_gn", "efficientnet_lite0"])
def test_our_own_file_serves_every_cut(name: str, tmp_path: Path) -> None:
    source = backbone_with_random_norms(name)
    save_checkpoint(source, tmp_path / "own.safetensors")
    for cut in (None, 5):
        loaded = make_backbone(name, cut, weights=tmp_path / "own.safetensors")
        assert torch.equal(features(loaded), features(source)) and loaded.ignored == ()


def test_half_precision_is_converted(tmp_path: Path) -> None:
    tensors = in_layout(make_backbone("resnet18", weights=RANDOM), "resnet18-torchvision")
    torch.save({name: tensor.half() for name, tensor in tensors.items()}, tmp_path / "half.pth")
    assert next(make_backbone("resnet18", weights=tmp_path / "half.pth").top.parameters()).dtype == torch.float32


def without(tensors: Tensors, *names: str) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if name not in names}


FAULTS: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "missing": (
        lambda tensors: without(tensors, "conv1.weight", "layer4.1.bn2.running_mean"),
        r"does not fit this network: missing: conv1\.weight, layer4\.1\.bn2\.running_mean$",
    ),
    "misshaped": (
        lambda tensors: tensors | {"layer1.0.conv1.weight": torch.zeros(64, 64, 1, 1)},
        r"of another shape: layer1\.0\.conv1\.weight \(\(64, 64, 1, 1\) for \(64, 64, 3, 3\)\)$",
    ),
    "not finite": (
        lambda tensors: tensors | {"bn1.bias": torch.full((64,), float("nan"))},
        r"not finite: bn1\.bias$",
    ),
    "not finite in 32 bits": (
        lambda tensors: tensors | {"bn1.bias": torch.full((64,), 1e300, dtype=torch.float64)},
        r"not finite: bn1\.bias$",
    ),
    "without numbers": (
        lambda tensors: tensors | {"bn1.bias": torch.empty(64, device="meta")},
        r"not plain floating-point tensors: bn1\.bias$",
    ),
    "negative": (
        lambda tensors: tensors | {"bn1.running_var": torch.linspace(-1e-6, 1, 64)},
        r"does not fit this network: negative variances: bn1\.running_var$",
    ),
    "many": (
        lambda tensors: {name: tensor for name, tensor in tensors.items() if not name.endswith("running_mean")},
        r"missing: bn1\.running_mean(, layer\S+){4} and 15 more$",
    ),
    "all at once": (
        lambda tensors: without(tensors, "conv1.weight") | {"bn1.bias": torch.full((3,), float("inf"))},
        r"missing: conv1\.weight; of another shape: bn1\.bias .*; not finite: bn1\.bias$",
    ),
    "twice": (lambda tensors: tensors | {"module.bn1.bias": tensors["bn1.bias"]}, "holds more than one network"),
    "foreign": (lambda _: {"encoder.0.weight": torch.zeros(2)}, r"none of this network's .* but encoder\.0\.weight$"),
    "all foreign": (
        lambda tensors: {f"encoder.{name}": tensor for name, tensor in tensors.items()},
        r"none of this network's tensors under a known name, but encoder(\S+, encoder){4}\S+ and \d+ more$",
    ),
    "no names": (lambda tensors: list(tensors.values()), "holds no named tensors"),
    "no tensors": (lambda _: {"state_dict": {}, "epoch": 3}, "holds no named tensors"),
    "a pickled network": (lambda _: nn.Linear(2, 2), "not a file of plain tensors"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_refused_with_the_names_of_its_tensors(fault: str, tmp_path: Path) -> None:
    spoil, pattern = FAULTS[fault]
    source = make_backbone("resnet18", weights=RANDOM)
    torch.save(spoil(in_layout(source, "resnet18-torchvision")), tmp_path / "faulty.pth")
    with pytest.raises(BadInput, match=pattern) as refusal:
        make_backbone("resnet18", weights=tmp_path / "faulty.pth")
    assert str(tmp_path / "faulty.pth") in str(refusal.value) and "\n" not in str(refusal.value)


NO_WEIGHTS = (
    *(b"", b"no weights at all", b"PK\x03\x04 cut off", b"a,b\n1,2\n", b"\0" * 99, b"12345678{}"),
    *(b".", b"\x80\x02}K\x01s.", b"\x80\x09.", b"}q\x00X"),  # each makes the unpickler fail in another way
)


@pytest.mark.parametrize("file", ["weights.pth", "weights.safetensors"])
@pytest.mark.parametrize("content", NO_WEIGHTS)
def test_other_files_are_refused(file: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(BadInput, match=re.escape(f"{tmp_path / file} is not a ")):
        make_backbone("resnet18", weights=tmp_path / file)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    save_checkpoint(make_backbone("mobilenet_v2", weights=RANDOM), tmp_path / "own.safetensors")
    torch.save({"a": torch.zeros(10000)}, tmp_path / "weights.pth")
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1000])
        with pytest.raises(BadInput, match="not a readable file of weights"):
            make_backbone("mobilenet_v2", weights=file)


def test_our_own_file_may_have_variances_below_zero_by_up_to_epsilon(tmp_path: Path) -> None:
    """timm's epsilon is smaller than ours, and the variance of a dead channel zero."""
    source = make_backbone("mobilenet_v3_large_plain", weights=RANDOM)
    tensors = in_layout(source, "mobilenet_v3_large_plain-timm")
    torch.save(tensors | {"bn1.running_var": torch.zeros(16)}, tmp_path / "timm.pth")
    loaded = make_backbone("mobilenet_v3_large_plain", weights=tmp_path / "timm.pth")
    save_checkpoint(loaded, tmp_path / "own.safetensors")
    again = make_backbone("mobilenet_v3_large_plain", weights=tmp_path / "own.safetensors")
    assert torch.equal(features(again), features(loaded)) and features(loaded).isfinite().all()
    assert min(tensor.min() for name, tensor in again.bottom.state_dict().items() if name.endswith("running_var")) < 0
    save_checkpoint(make_backbone("resnet18", weights=RANDOM), tmp_path / "spoilt.safetensors")
    spoilt = load_file(tmp_path / "spoilt.safetensors")
    spoilt["layers.0.1.running_var"] -= 2
    save_file(spoilt, tmp_path / "spoilt.safetensors")
    with pytest.raises(BadInput, match=r"negative variances: layers\.0\.1\.running_var$"):
        make_backbone("resnet18", weights=tmp_path / "spoilt.safetensors")


def test_weights_for_another_norm_are_refused_or_reported(tmp_path: Path) -> None:
    """A group-norm file lacks statistics; a batch-norm file has some that are named as not used."""
    save_checkpoint(make_backbone("resnet18_gn", weights=RANDOM), tmp_path / "gn.safetensors")
    save_checkpoint(make_backbone("resnet18", weights=RANDOM), tmp_path / "bn.safetensors")
    with pytest.raises(BadInput, match=r"missing: layers\.6\.body\.1\.running_mean"):
        make_backbone("resnet18", weights=tmp_path / "gn.safetensors")
    ignored = make_backbone("resnet18_gn", weights=tmp_path / "bn.safetensors").ignored
    assert len(ignored) == 14 and all(name.endswith(("running_mean", "running_var")) for name in ignored)


def test_the_name_of_a_file_does_not_decide_its_format(tmp_path: Path) -> None:
    network = make_backbone("mobilenet_v2", weights=RANDOM)
    save_checkpoint(network, tmp_path / "weights.pt")
    torch.save(load_file(tmp_path / "weights.pt"), tmp_path / "weights.safetensors")
    for name in ("weights.pt", "weights.safetensors"):
        again = make_backbone("mobilenet_v2", weights=tmp_path / name)
        for one, other in zip(network.top.parameters(), again.top.parameters(), strict=True):
            assert torch.equal(one, other)


def test_tensors_for_another_image_size_are_resized_where_the_network_says_how(tmp_path: Path) -> None:
    class Positions(nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.positions = nn.Parameter(torch.arange(float(count)))

    def every_second(tensor: Tensor, shape: torch.Size) -> Tensor:
        return tensor[::2] if len(tensor) == 2 * shape[0] else tensor

    network = nn.Sequential(Positions(3))
    for count in (6, 7):
        save_file({"layers.0.positions": torch.arange(float(count)).half()}, tmp_path / f"{count}.safetensors")
    assert load_weights(network, tmp_path / "6.safetensors", (), {"0.positions": every_second}) == ()
    assert network.state_dict()["0.positions"].tolist() == [0, 2, 4]
    for file, resize in (("6", {}), ("7", {"0.positions": every_second})):
        with pytest.raises(BadInput, match=r"of another shape: layers\.0\.positions \(\(\d,\) for \(3,\)\)"):
            load_weights(network, tmp_path / f"{file}.safetensors", (), resize)
