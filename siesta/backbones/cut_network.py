"""A network cut in two, as arrays: what a learner stores of it, and what inference engines run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from siesta.backbones import PUBLISHED, RANDOM, check_weights, cut_of, find_spec
from siesta.backbones.spec import BackboneSpec
from siesta.backbones.structure import read_structure
from siesta.contracts import Operation
from siesta.extras import require_torch

if TYPE_CHECKING:  # the wake side uses networks, and must not load torch
    from siesta.contracts import Backbone

__all__ = ["CutNetwork", "initial_network"]

Weights = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class CutNetwork:
    """Which network it is, how it is cut, and its weights.

    Attributes:
        name: Its key in `BACKBONES` or `VECTOR_NETWORKS`.
        cut: The number of layers in the bottom.
        linear: Whether the last activation is left out.
        input_size: Side in pixels of square images, or the length of vectors.
        bottom: Weights and buffers of the bottom, by the names of its state dict.
        top: Those of the top, with the centre of z.
        ignored: Entries of the weights file that the network has no place for.
    """

    name: str
    cut: int
    linear: bool
    input_size: int
    bottom: Weights
    top: Weights
    ignored: tuple[str, ...] = ()

    @property
    def spec(self) -> BackboneSpec:
        """What the file of the network declares."""
        return find_spec(self.name, linear=self.linear, size=self.input_size)

    @property
    def centre(self) -> str:
        """The name of the centre of z in the top."""
        return [name for name in self.top if name.endswith(".centre")][-1]

    def operations(self, part: str, source: str, target: str) -> list[Operation] | None:
        """Return the operations of the part "bottom" or "top"; None for a network of another package."""
        if part == "bottom" and not self.cut:
            return [Operation("Identity", (source,), target)]
        structure = read_structure(self.name)
        if structure is None:
            return None
        start, stop = (0, self.cut) if part == "bottom" else (self.cut, len(structure.layers) + 1)
        return structure.operations(start, stop, linear=self.linear, source=source, target=target)

    def torch_backbone(self) -> Backbone:
        """Return the network in torch with these weights."""
        require_torch("training")
        from siesta.backbones.arrays import load_arrays
        from siesta.backbones.make import make_backbone

        backbone = make_backbone(self.name, self.cut, weights=RANDOM, linear=self.linear, image_size=self.input_size)
        load_arrays(backbone.bottom, self.bottom)
        load_arrays(backbone.top, self.top)
        return backbone


def initial_network(name: str, cut: int | None, *, weights: str | Path, linear: bool, input_size: int) -> CutNetwork:
    """Return a new network; torch is needed unless its weights are the published ones of one of siesta's own networks.

    The arguments are those of `make_backbone`, whose `image_size` is `input_size`.
    """
    spec = find_spec(name, linear=linear, size=input_size)
    structure = read_structure(name)
    cut = cut_of(name, cut)
    check_weights(name, weights)
    if weights == PUBLISHED and structure is not None and spec.published is not None:
        bottom, top = _cut(spec.published().items(), cut)
        top[f"{len(structure.layers) - cut}.centre"] = np.zeros(spec.features, np.float32)
        return CutNetwork(name, cut, linear, input_size, bottom, top)
    what = "random weights" if weights == RANDOM else f"the weights '{weights}'"
    require_torch(f"a new learner with {what}")
    from siesta.backbones.arrays import state_arrays
    from siesta.backbones.make import make_backbone

    backbone = make_backbone(name, cut, weights=weights, linear=linear, image_size=input_size)
    bottom, top = state_arrays(backbone.bottom), state_arrays(backbone.top)
    return CutNetwork(name, cut, linear, input_size, bottom, top, backbone.ignored)


def _cut(
    weights: Iterable[tuple[str, npt.NDArray[Any]]], cut: int
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return the weights of bottom and top, whose names count layers from the bottom of each."""
    bottom: dict[str, npt.NDArray[Any]] = {}
    top: dict[str, npt.NDArray[Any]] = {}
    for name, array in weights:
        layer, _, rest = name.partition(".")
        if int(layer) < cut:
            bottom[name] = array
        else:
            top[f"{int(layer) - cut}.{rest}"] = array
    return bottom, top
