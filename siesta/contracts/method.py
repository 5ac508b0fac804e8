"""A continual-learning method as the harness compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from siesta.contracts.arrays import Codes
from siesta.contracts.progress import OnProgress

__all__ = ["Method", "Resources"]


@dataclass(frozen=True)
class Resources:
    """The costs of a method so far; U, P and M are the paper's symbols.

    Attributes:
        updates: U, backward passes of single samples; a mixed pair counts as one.
        parameters: P, all weights, those of the bottom included.
        bytes: M by part: codes, images, network, copies, codebooks, means.
        flops: Floating-point operations by phase: wake, sleep, inference.
        seconds: Wall time by phase.
    """

    updates: int
    parameters: int
    bytes: Mapping[str, int]
    flops: Mapping[str, float]
    seconds: Mapping[str, float]


@runtime_checkable
class Method(Protocol):
    """A continual-learning method as the harness compares them.

    It is opened in a learner folder and resumes from its last `save` there. Resuming from a copy of that folder gives
    bit for bit what continuing would have given.

    Attributes:
        codec: Name of the codec that the learner in its folder must use.
        Settings: The class of its settings, a `siesta.methods.MethodSettings` with a default for every field.
    """

    codec: ClassVar[str]
    Settings: ClassVar[type[Any]]

    def __init__(self, folder: Path, settings: Any, seed: int) -> None:
        """Open the method in a learner folder.

        Args:
            folder: The folder; all that the method keeps is there.
            settings: An object of its `Settings`.
            seed: The only source of its randomness.
        """

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Learn samples in order; splitting them over several calls makes no difference."""

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """Do what the method does at the end of a step, which may be nothing."""

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """Return the `top` best labels of each sample, best first; fewer if fewer classes are known."""

    def resources(self) -> Resources:
        """Return the costs so far."""

    def save(self) -> None:
        """Write everything needed to resume into the folder."""

    def close(self) -> None:
        """Close the files."""
