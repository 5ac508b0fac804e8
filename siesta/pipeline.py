"""The way of a picture: bottom, codec and top of a learner, and the engines that run them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from siesta.backbones import DEFAULT_SPACE, RANDOM, make_backbone, make_space
from siesta.codecs import CODECS, relative_error
from siesta.contracts import Backbone, Codec, Codes, Engine
from siesta.engines import choose_engine, folded, graph_of, make_engine, one_torch_thread
from siesta.errors import BadInput, Damaged
from siesta.images import Pixels, scaled
from siesta.store import Store

__all__ = ["Pipeline", "graphs", "groups", "running", "torch_device"]

T = TypeVar("T")


class Pipeline:
    """Pictures -> codes -> latents -> z, with the weights that a store has in use.

    Attributes:
        backbone: Bottom and top; the top's weights are those that `load_top` took last.
        codec: Between the two.
        latent_shape: (d, r, s) of Z.
        image_size: Side of the square that pictures are brought to.
        device: Where torch computes.
    """

    def __init__(
        self,
        backbone: Backbone,
        codec: Codec,
        image_size: int,
        latent_shape: tuple[int, int, int],
        device: torch.device,
        engine: str,
        structures: Mapping[str, Tensor],
    ) -> None:
        """Takes the parts as they are; use `of`.

        Args:
            backbone: Its bottom is filled; its top is by `load_top`.
            codec: On `device`.
            image_size: In pixels.
            latent_shape: What the bottom makes of such pictures.
            device: Of torch.
            engine: What runs bottom and top.
            structures: What `graphs` made, for the onnx engine.
        """
        self.backbone, self.codec = backbone, codec
        self.image_size, self.latent_shape, self.device = image_size, latent_shape, device
        self._engine, self._structures = engine, structures
        self._bottom = running(engine, backbone.bottom, structures.get("bottom"), device)
        self._top: Engine

    @classmethod
    def of(
        cls, store: Store, device: str = "cpu", engine: str | None = None, top: Mapping[str, Tensor] | None = None
    ) -> Pipeline:
        """What is in a store.

        Args:
            store: Of a learner.
            device: Where torch computes.
            engine: What runs the network: "onnx" or "torch"; when None, onnx on a CPU and torch elsewhere.
            top: Its weights, where they were read already; those of the generation in use when None.
        """
        where, settings = torch_device(device), store.settings
        chosen = choose_engine(engine, where)
        linear = make_space(settings.get("space", DEFAULT_SPACE)).linear  # learners of old have no such setting
        backbone = make_backbone(settings["backbone"], settings["cut"], weights=RANDOM, linear=linear)
        backbone.bottom.load_state_dict(store.constant("bottom"))
        codec = CODECS[settings["codec"]].from_state(store.constant("codec")).to(where)
        structures: dict[str, Tensor] = {}
        if chosen == "onnx":
            with suppress(Damaged):  # it can be made again
                structures = store.constant("graphs")
            structures = structures or graphs(backbone, settings["image_size"])
        channels, rows, columns = settings["latent_shape"]
        made = cls(backbone, codec, settings["image_size"], (channels, rows, columns), where, chosen, structures)
        made.load_top(store.snapshot().weights["top"] if top is None else top)
        return made

    def load_top(self, state: Mapping[str, Tensor]) -> None:
        """Takes new weights of the top, and fills its engine with them."""
        self.backbone.top.load_state_dict(dict(state))
        self._top = running(self._engine, self.backbone.top, self._structures.get("top"), self.device)

    def load_codec(self, kind: str, state: Mapping[str, Tensor]) -> None:
        """Takes another codec: a key of `CODECS`, and its tensors."""
        self.codec = CODECS[kind].from_state(dict(state)).to(self.device)

    def quietly(self) -> AbstractContextManager[None]:
        """Keeps torch's threads out of the engine's way."""
        return one_torch_thread() if self._engine == "onnx" else nullcontext()

    def encode(self, pixels: Sequence[Pixels]) -> Codes:
        """Pictures (S, S, 3), one or more -> codes (B, code_bytes)."""
        return self._encoded(self.latents(pixels))

    def encode_measured(self, pixels: Sequence[Pixels]) -> tuple[Codes, float]:
        """The same, with the codec's relative error on the first of them."""
        latents = self.latents(pixels)
        with torch.inference_mode(), self.quietly():
            return self._encoded(latents), relative_error(self.codec, latents[:1])

    @torch.inference_mode()
    def latents(self, pixels: Sequence[Pixels]) -> Tensor:
        """Pictures (S, S, 3), one or more -> Z (B, d, r, s)."""
        with self.quietly():
            return self._bottom.run(scaled(pixels, self.backbone.scaling))

    @torch.inference_mode()
    def _encoded(self, latents: Tensor) -> Codes:
        with self.quietly():
            codes: Codes = self.codec.encode(latents).cpu().numpy()
        return codes

    def decode(self, codes: Codes) -> Tensor:
        """Codes (B, code_bytes) -> latents (B, d, r, s) on the device."""
        tensor = torch.from_numpy(np.require(codes, requirements=["C", "W"]))  # torch wants what it could write to
        return self.codec.decode(tensor.to(self.device), self.latent_shape)

    @torch.inference_mode()
    def features(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Codes (B, code_bytes) -> z (B, D): always from what can be reconstructed, awake and asleep alike."""
        with self.quietly():
            features: npt.NDArray[np.float32] = self._top.run(self.decode(codes)).cpu().numpy()
        return features


def graphs(network: Backbone, image_size: int) -> dict[str, Tensor]:
    """The structures of bottom and top for the onnx engine, as bytes (N,); a network without weights needs none."""
    parts = {
        "bottom": (network.bottom, (3, image_size, image_size)),
        "top": (network.top, network.latent_shape(image_size)),
    }
    return {
        name: torch.frombuffer(bytearray(graph_of(folded(part), shape)), dtype=torch.uint8)
        for name, (part, shape) in parts.items()
        if part.state_dict()
    }


def running(engine: str, network: nn.Sequential, structure: Tensor | None, device: torch.device) -> Engine:
    """An engine that runs a bottom or a top as it is now; `structure` is what `graphs` made of it, if anything."""
    return make_engine(engine, network, None if structure is None else structure.numpy().tobytes(), device)


def groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Consecutive groups of up to `size` items."""
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


def torch_device(name: str) -> torch.device:
    """The device of a name, if torch can compute on it."""
    try:
        return torch.empty(0, device=name).device
    except (AssertionError, RuntimeError) as error:
        raise BadInput(f"torch cannot compute on '{name}' here: {str(error).splitlines()[0]}") from error
