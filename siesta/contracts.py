"""Read this first: the few shapes that everything in siesta plugs into.

A learner is `head(top(codec.decode(codec.encode(bottom(image)))))`; in the paper's letters F(G(H(x))) with an
optimised product quantiser between H and G. Awake, only the head changes; asleep, top and head are trained on codes
that a policy picks from the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # policies, and with them the command line's help, do without torch
    from torch import Tensor, nn

__all__ = [
    "Augmentation",
    "Backbone",
    "Codec",
    "Codes",
    "Embed",
    "Embedded",
    "Engine",
    "Ids",
    "Memory",
    "Method",
    "OnProgress",
    "Policy",
    "Prediction",
    "Progress",
    "Resources",
    "Scaling",
    "SleepDefaults",
    "SleepReport",
]

Ids = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
"""(B, code_bytes): what a codec makes of pictures; of the raw codec, their pixels."""


@dataclass(frozen=True)
class Scaling:
    """How a backbone wants its pixels: `(pixel - mean) / std` on 0..255, one value a channel."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True)
class SleepDefaults:
    """Training values that belong to a network rather than to a run.

    Attributes:
        rate: Highest rate of the last layer, for a batch of 64; it scales linearly with the batch.
        layer_decay: Factor on the rate for each layer below the last.
        scale: Start value of the head's 1 / temperature.
        dropout: Share of z that is dropped between top and head, asleep only.
    """

    rate: float
    layer_decay: float
    scale: float
    dropout: float


@dataclass(frozen=True)
class Backbone:
    """A network cut in two.

    Attributes:
        name: Its key in `BACKBONES`.
        cut: How many layers lie below the cut.
        bottom: H, frozen for ever: (B, 3, S, S) -> (B, d, r, s).
        top: G, layer by layer from low to high, trained asleep: (B, d, r, s) -> (B, features).
        features: Length of z.
        scaling: What `bottom` expects its pixels to be.
        defaults: Training values that suit this network.
        ignored: What the file of its weights held besides, such as an output layer.
    """

    name: str
    cut: int
    bottom: nn.Sequential
    top: nn.Sequential
    features: int
    scaling: Scaling
    defaults: SleepDefaults
    ignored: tuple[str, ...] = ()

    def latent_shape(self, image_size: int) -> tuple[int, int, int]:
        """Shape (d, r, s) of Z for square pictures of `image_size` pixels."""
        import torch

        with torch.no_grad():
            latents = self.bottom(torch.zeros(1, 3, image_size, image_size))
        channels, rows, columns = latents.shape[1:]
        return channels, rows, columns


@runtime_checkable
class Codec(Protocol):
    """Turns latents into few bytes and back. Stateless once fitted; any batch, one included."""

    name: str

    def code_bytes(self, latent_shape: tuple[int, int, int]) -> int:
        """Bytes that one sample of shape (d, r, s) takes."""
        ...

    def encode(self, latents: Tensor) -> Tensor:
        """(B, d, r, s) float -> (B, code_bytes) uint8."""
        ...

    def decode(self, codes: Tensor, latent_shape: tuple[int, int, int]) -> Tensor:
        """(B, code_bytes) uint8 -> (B, d, r, s) float."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Everything needed to make this codec again, as tensors."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Runs a network that does not learn just now."""

    def run(self, inputs: Tensor) -> Tensor:
        """(B, C, H, W) -> the network's output for each of the B."""
        ...


@dataclass(frozen=True)
class Embedded:
    """Some stored samples as the current top and head see them.

    Attributes:
        ids: Sample ids, (B,).
        features: z, (B, D).
        logits: Cosines over temperature, a column for each row of the head, (B, K).
        rows: Head row of each sample's own class, (B,).
    """

    ids: Ids
    features: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]


Embed = Callable[[Ids], Iterator[Embedded]]
"""Ids (N,) -> chunks of them in the order asked for, none empty; those that are no longer stored are left out."""


def _no_embeddings(_ids: Ids) -> Iterator[Embedded]:
    raise ValueError("this memory has no embeddings: give it an `embed`")


@dataclass(frozen=True)
class Memory:
    """All that a policy may see of what is stored: one row a sample, in no promised order.

    Attributes:
        ids: Sample ids, (N,).
        classes: Class id of each sample, (N,).
        rehearsed: How often each sample was rehearsed so far, (N,).
        new_classes: Ids of the classes first taught since the last sleep.
        embed: Looks at samples through the network, at the price of a forward pass each. A million of them do not
            fit in RAM: reduce each chunk to a few numbers as it passes.
    """

    ids: Ids
    classes: npt.NDArray[np.int32]
    rehearsed: npt.NDArray[np.int32]
    new_classes: npt.NDArray[np.int32]
    embed: Embed = _no_embeddings


@runtime_checkable
class Policy(Protocol):
    """Decides what is rehearsed. `picks` goes on for ever: the sleep loop takes what its budget allows."""

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yields chunks of sample ids, of any length, in rehearsal order."""
        ...


class Augmentation(Protocol):
    """Mixes two batches of latents; a plain function will do."""

    def __call__(self, first: Tensor, second: Tensor, rng: np.random.Generator, /) -> tuple[Tensor, float]:
        """Two times (B, d, r, s) -> mixed latents (B, d, r, s) and lambda, the share of `first` in them."""
        ...


@dataclass(frozen=True)
class Prediction:
    """An answer: the best label, its probability, and the best few of both.

    `known` is False, and the label "unknown", where the score is below what was asked for.
    """

    label: str
    score: float
    top: list[tuple[str, float]]
    known: bool = True


@dataclass(frozen=True)
class Progress:
    """Where a sleep stands after a batch. `seconds_left` is an estimate for an update budget."""

    updates: int
    fraction: float
    loss: float
    rate: float
    updates_per_second: float
    seconds_left: float


OnProgress = Callable[[Progress], bool | None]
"""Called after each batch; returning True wakes the learner up early."""


@dataclass(frozen=True)
class SleepReport:
    """What a sleep spent and what it changed.

    Attributes:
        generation: Number of the new weights.
        updates: Backward passes of single samples; a mixed pair is one.
        seconds: Wall time from planning to the last step.
        samples: Different samples that were rehearsed.
        embedded: Samples that were embedded for planning.
        classes: Classes in the head.
        new_classes: How many of them had never been slept on.
        loss_before: Mean training loss over the first tenth of the batches.
        loss_after: The same over the last tenth.
        top_change: |new - old| / |old| over all weights of the top.
        interrupted: True when the sleep ended before its budget did.
        held_out: Samples that are never rehearsed; asked about before and after, where there are any.
        accuracy_before: Share of them that was answered rightly before the sleep.
        accuracy_after: The same with the new weights.
        confidence: What they say of the new weights' scores, see `Confidence`.
        used: False when the new weights did worse on them than was tolerated: they are kept, the old ones answer.
        settings: The values it ran with.
    """

    generation: int
    updates: int
    seconds: float
    samples: int
    embedded: int
    classes: int
    new_classes: int
    loss_before: float
    loss_after: float
    top_change: float
    interrupted: bool
    held_out: int
    accuracy_before: float | None
    accuracy_after: float | None
    confidence: Mapping[str, Any]
    used: bool
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def words(self) -> str:
        """The same for people."""
        woke = "Woke up early" if self.interrupted else "Slept"
        words = (
            f"{woke}: {self.updates:,} updates in {self.seconds:.1f} s over {self.samples:,} samples of "
            f"{self.classes:,} classes ({self.new_classes:,} new). Loss {self.loss_before:.3f} -> "
            f"{self.loss_after:.3f}, top changed by {100 * self.top_change:.2f} %{self.held_out_words()}. "
        )
        if self.used:
            return f"{words}Generation {self.generation} is in use."
        return f"{words}That is worse than tolerated: generation {self.generation} is kept but not used."

    def held_out_words(self) -> str:
        """How answers to held-out samples changed, to end a sentence with; nothing where there are none."""
        if self.accuracy_before is None or self.accuracy_after is None:
            return ""
        shares = f"{100 * self.accuracy_before:.1f} % -> {100 * self.accuracy_after:.1f} %"
        return f"; on {self.held_out:,} samples it never rehearses {shares}"


@dataclass(frozen=True)
class Resources:
    """What a method has cost so far.

    Attributes:
        updates: U, backward passes of single samples; a mixed pair is one.
        parameters: P, all weights, bottom included.
        bytes: M in its parts: codes, images, network, copies, codebooks, means.
        flops: By phase: wake, sleep, inference.
        seconds: By phase.
    """

    updates: int
    parameters: int
    bytes: Mapping[str, int]
    flops: Mapping[str, float]
    seconds: Mapping[str, float]


@runtime_checkable
class Method(Protocol):
    """A way to learn continually, as the harness compares them. It lives in a folder and goes on from what is there."""

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Learns samples in order, as if they came one by one."""
        ...

    def sleep(self, on_progress: OnProgress | None = None) -> None:
        """What happens at the end of a step; it may be nothing."""
        ...

    def predict_many(self, codes: Codes, top: int = 5) -> list[list[str]]:
        """The best labels of each sample, best first; fewer than `top` where fewer classes are known."""
        ...

    def resources(self) -> Resources:
        """What it has cost so far."""
        ...

    def save(self) -> None:
        """Puts everything needed to go on into its folder."""
        ...

    def close(self) -> None:
        """Lets go of its files."""
        ...
