"""Operations of a network, from which an inference engine's graph is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Attribute", "Operation"]

Attribute = float | int | str | Sequence[int]
"""The value of an ONNX attribute."""


@dataclass(frozen=True)
class Operation:
    """One operation of ONNX's default domain.

    Attributes:
        kind: Its ONNX name, such as "Conv".
        inputs: Names of values and weights that it takes, in ONNX's order; "" for one that is left out.
        output: Name of the value that it gives.
        attributes: Its ONNX attributes by name.
    """

    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
