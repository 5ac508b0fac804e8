"""How other projects name the tensors of our networks.

A layout lists module names in the order in which our networks hold their modules. Inside a module (`weight`, `bias`,
`running_mean`, ...) all projects use torch's own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "CheckpointLayout",
    "siesta_layout",
    "timm_mobilenet",
    "torchvision_mobilenet_v2",
    "torchvision_mobilenet_v3",
    "torchvision_resnet",
]

ModuleNames = Callable[["nn.Sequential"], Iterator[str]]
PartNames = Callable[[int, str], tuple[str, str]]


@dataclass(frozen=True)
class CheckpointLayout:
    """Names of the tensors in the checkpoints of one project.

    Attributes:
        modules: Yields the project's module names for one of our networks, in the order of our modules; "" for a
            module whose tensors the project has at its top level.
        norm_eps: Epsilon of the project's batch norms where it differs from ours.
        foreign: False for the layout of our own files.
    """

    modules: ModuleNames
    norm_eps: float | None = None
    foreign: bool = True

    def tensors(self, network: nn.Sequential) -> dict[str, str]:
        """Map our name of each tensor to the project's; the counter `num_batches_tracked` is left out."""
        holders = {name: tensors for name, module in network.named_modules() if (tensors := _own_tensors(module))}
        return {
            f"{name}.{tensor}": f"{foreign_name}.{tensor}".removeprefix(".")
            for (name, tensors), foreign_name in zip(holders.items(), self.modules(network), strict=True)
            for tensor in tensors
        }


def _own_tensors(module: nn.Module) -> list[str]:
    """Return the names of the tensors that a module holds itself."""
    named = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    return [name for name, _ in named if name != "num_batches_tracked"]


def siesta_layout() -> CheckpointLayout:
    """Return the layout of our own files: `layers.<i>.` before the names in each layer, whatever the cut."""

    def names(network: nn.Sequential) -> Iterator[str]:
        return (f"layers.{name}" for name, module in network.named_modules() if _own_tensors(module))

    return CheckpointLayout(names, foreign=False)


def torchvision_mobilenet_v3(network: nn.Sequential) -> Iterator[str]:
    """Yield the module names of MobileNetV3 in torchvision, and in the reference SIESTA after its prefix `model.`."""
    yield from _torchvision_mobilenet(network, _v3_part)
    yield "classifier.0"


def torchvision_mobilenet_v2(network: nn.Sequential) -> Iterator[str]:
    """Yield the module names of MobileNetV2 in torchvision."""
    yield from _torchvision_mobilenet(network, _v2_part)


def _torchvision_mobilenet(network: nn.Sequential, part_names: PartNames) -> Iterator[str]:
    from siesta.backbones.layers import InvertedResidual

    for index, layer in enumerate(network):
        if isinstance(layer, InvertedResidual):
            for position, part in enumerate(layer.parts):
                yield from (f"features.{index}.{name}" for name in part_names(position, part))
        else:
            yield from (f"features.{index}.0", f"features.{index}.1")


def _v3_part(position: int, part: str) -> tuple[str, str]:
    first, second = ("fc1", "fc2") if part == "squeeze" else ("0", "1")
    return f"block.{position}.{first}", f"block.{position}.{second}"


def _v2_part(position: int, part: str) -> tuple[str, str]:
    if part == "project":  # has no activation, so torchvision does not nest it
        return f"conv.{position}", f"conv.{position + 1}"
    return f"conv.{position}.0", f"conv.{position}.1"


_TIMM_PARTS: Mapping[str, tuple[str, str]] = {
    "expand": ("conv_pw", "bn1"),
    "depthwise": ("conv_dw", "bn2"),
    "squeeze": ("se.conv_reduce", "se.conv_expand"),
    "project": ("conv_pwl", "bn3"),
}
_TIMM_PARTS_WITHOUT_EXPAND = {**_TIMM_PARTS, "depthwise": ("conv_dw", "bn1"), "project": ("conv_pw", "bn2")}


def timm_mobilenet(stages: Sequence[int], tail: Sequence[str]) -> ModuleNames:
    """Return the module names of mobile networks in timm.

    Args:
        stages: Number of blocks in each stage.
        tail: Names of the modules after the blocks.
    """

    def names(network: nn.Sequential) -> Iterator[str]:
        from siesta.backbones.layers import InvertedResidual

        yield from ("conv_stem", "bn1")
        positions = ((stage, repeat) for stage, repeats in enumerate(stages) for repeat in range(repeats))
        blocks = (layer for layer in network if isinstance(layer, InvertedResidual))
        for (stage, repeat), block in zip(positions, blocks, strict=True):
            parts = _TIMM_PARTS if "expand" in block.parts else _TIMM_PARTS_WITHOUT_EXPAND
            for part in block.parts:
                yield from (f"blocks.{stage}.{repeat}.{name}" for name in parts[part])
        yield from tail

    return names


def torchvision_resnet(network: nn.Sequential) -> Iterator[str]:
    """Yield the module names of ResNet18 in torchvision and timm, two blocks a stage."""
    from torch import nn

    yield from ("conv1", "bn1")
    for index, block in enumerate(list(network)[1:-1]):
        parts = ["conv1", "bn1", "conv2", "bn2"]
        if isinstance(block.shortcut, nn.Sequential):
            parts += ["downsample.0", "downsample.1"]
        yield from (f"layer{index // 2 + 1}.{index % 2}.{part}" for part in parts)
