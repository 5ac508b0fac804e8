"""The operations of siesta's own networks, layer by layer, from which the ONNX graph of any cut is put together.

The files `structures/<backbone>.json` were written by `scripts/network_structures.py` from the torch modules. They do
not depend on the size of the images.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from siesta.contracts import Operation

__all__ = ["Structure", "read_structure"]

_VALUE = "%"  # begins the name of a value; other inputs are weights
_LAYER_INPUT = "%0"


@dataclass(frozen=True)
class Structure:
    """The operations of an uncut network.

    Attributes:
        layers: Of each layer, its operations as (kind, inputs, output, attributes).
        last_activation: Layer and output of the last activation before z; None where z follows none.

    Example:
        >>> structure = Structure([[("Relu", ["%0"], "%1", {})]], last_activation=(0, "%1"))
        >>> [each.kind for each in structure.operations(0, 1, linear=False, source="x", target="y")]
        ['Relu', 'Identity']
    """

    layers: list[list[Any]]
    last_activation: tuple[int, str] | None

    def operations(self, start: int, stop: int, *, linear: bool, source: str, target: str) -> list[Operation]:
        """Return the operations of the layers from `start` up to `stop`; the centre of z follows the last layer.

        Args:
            start: First layer; the names of weights count layers from here.
            stop: The layer after the last one; one more than there are layers for the centre.
            linear: Whether to leave out the last activation.
            source: Name of the value that they begin with.
            target: Name of the value that they end with.
        """
        found: list[Operation] = []
        x = source
        for index, layer in enumerate(self.layers[start:stop], start):
            names = {_LAYER_INPUT: x}
            for kind, inputs, output, attributes in layer:
                x = names[output] = f"{index}{output}"
                weights = (name if name.startswith(_VALUE) else f"{index - start}.{name}" for name in inputs)
                taken = tuple(names.get(name, name) for name in weights)
                if linear and self.last_activation == (index, output):
                    found.append(Operation("Identity", taken[:1], x))
                else:
                    found.append(Operation(kind, taken, x, attributes))
        if stop > len(self.layers):
            found.append(Operation("Sub", (x, f"{len(self.layers) - start}.centre"), "centred"))
            x = "centred"
        return [*found, Operation("Identity", (x,), target)]


@cache
def read_structure(backbone: str) -> Structure | None:
    """Return the structure of a network; None for one of another package."""
    file = resources.files("siesta.backbones") / "structures" / f"{backbone}.json"
    if not file.is_file():
        return None
    content = json.loads(file.read_text("utf-8"))
    last = content["last_activation"]
    return Structure(content["layers"], None if last is None else (last[0], last[1]))
