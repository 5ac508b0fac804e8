"""How other projects name the tensors of our networks.

A layout lists its modules in the order in which ours hold tensors; inside a module (`weight`, `bias`,
`running_mean`, ...) all of them use torch's own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from siesta.backbones.layers import InvertedResidual

__all__ = [
    "Layout",
    "ours",
    "timm_mobilenet",
    "torchvision_mobilenet_v2",
    "torchvision_mobilenet_v3",
    "torchvision_resnet",
]

ModuleNames = Callable[[nn.Sequential], Iterator[str]]
PartNames = Callable[[int, str], tuple[str, str]]


@dataclass(frozen=True)
class Layout:
    """Names of another project.

    Attributes:
        modules: Their module names for a network of ours, in its order.
        norm_eps: Their batch norm's epsilon where it is not ours.
        others: False for the layout of our own files.
    """

    modules: ModuleNames
    norm_eps: float | None = None
    others: bool = True

    def tensors(self, network: nn.Sequential) -> dict[str, str]:
        """Our name of each tensor -> theirs. The count of batches seen is left out: nothing here uses it."""
        holders = {name: tensors for name, module in network.named_modules() if (tensors := _own_tensors(module))}
        return {
            f"{name}.{tensor}": f"{their}.{tensor}"
            for (name, tensors), their in zip(holders.items(), self.modules(network), strict=True)
            for tensor in tensors
        }


def _own_tensors(module: nn.Module) -> list[str]:
    """Names of the tensors that lie in a module itself."""
    named = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    return [name for name, _ in named if name != "num_batches_tracked"]


def ours() -> Layout:
    """The layout of our own files: `layers.<i>.` before the names inside each layer, wherever the cut."""

    def names(network: nn.Sequential) -> Iterator[str]:
        return (f"layers.{name}" for name, module in network.named_modules() if _own_tensors(module))

    return Layout(names, others=False)


def torchvision_mobilenet_v3(network: nn.Sequential) -> Iterator[str]:
    """MobileNetV3 in torchvision; behind `model.` the reference SIESTA's too."""
    yield from _torchvision_mobilenet(network, _v3_part)
    yield "classifier.0"


def torchvision_mobilenet_v2(network: nn.Sequential) -> Iterator[str]:
    """MobileNetV2 in torchvision."""
    yield from _torchvision_mobilenet(network, _v2_part)


def _torchvision_mobilenet(network: nn.Sequential, part_names: PartNames) -> Iterator[str]:
    for index, layer in enumerate(network):
        if isinstance(layer, InvertedResidual):
            for place, part in enumerate(layer.parts):
                yield from (f"features.{index}.{name}" for name in part_names(place, part))
        else:
            yield from (f"features.{index}.0", f"features.{index}.1")


def _v3_part(place: int, part: str) -> tuple[str, str]:
    first, second = ("fc1", "fc2") if part == "squeeze" else ("0", "1")
    return f"block.{place}.{first}", f"block.{place}.{second}"


def _v2_part(place: int, part: str) -> tuple[str, str]:
    if part == "project":  # alone it is not nested
        return f"conv.{place}", f"conv.{place + 1}"
    return f"conv.{place}.0", f"conv.{place}.1"


_TIMM_PARTS: Mapping[str, tuple[str, str]] = {
    "expand": ("conv_pw", "bn1"),
    "depthwise": ("conv_dw", "bn2"),
    "squeeze": ("se.conv_reduce", "se.conv_expand"),
    "project": ("conv_pwl", "bn3"),
}
_TIMM_PARTS_UNEXPANDED = {**_TIMM_PARTS, "depthwise": ("conv_dw", "bn1"), "project": ("conv_pw", "bn2")}


def timm_mobilenet(stages: Sequence[int], tail: Sequence[str]) -> ModuleNames:
    """Mobile networks in timm: so many blocks in each stage, and these modules after them."""

    def names(network: nn.Sequential) -> Iterator[str]:
        yield from ("conv_stem", "bn1")
        places = ((stage, repeat) for stage, repeats in enumerate(stages) for repeat in range(repeats))
        blocks = (layer for layer in network if isinstance(layer, InvertedResidual))
        for (stage, repeat), block in zip(places, blocks, strict=True):
            parts = _TIMM_PARTS if "expand" in block.parts else _TIMM_PARTS_UNEXPANDED
            for part in block.parts:
                yield from (f"blocks.{stage}.{repeat}.{name}" for name in parts[part])
        yield from tail

    return names


def torchvision_resnet(network: nn.Sequential) -> Iterator[str]:
    """ResNet18 in torchvision and timm, two blocks a stage."""
    yield from ("conv1", "bn1")
    for index, block in enumerate(list(network)[1:-1]):
        parts = ["conv1", "bn1", "conv2", "bn2"]
        if isinstance(block.shortcut, nn.Sequential):
            parts += ["downsample.0", "downsample.1"]
        yield from (f"layer{index // 2 + 1}.{index % 2}.{part}" for part in parts)
