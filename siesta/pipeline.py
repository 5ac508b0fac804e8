"""The inference path of a learner: bottom, codec and top, each with the engine that runs it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from siesta.backbones import DEFAULT_SPACE, make_space
from siesta.backbones.cut_network import CutNetwork, Weights
from siesta.backbones.folded_norm import fold_norms
from siesta.backbones.spec import BackboneSpec
from siesta.codecs import CODECS, relative_error
from siesta.codecs.blas import one_blas_thread
from siesta.contracts import Backbone, Codec, Codes, Engine, Input, Latents, LatentShape, NetworkPart
from siesta.engines import ENGINES, choose_engine
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph
from siesta.errors import BadInput, Damaged
from siesta.extras import require_torch
from siesta.images import ImageInput, ImageLike
from siesta.malloc import return_freed_memory
from siesta.store import Store
from siesta.store.tensor_files import StoredTensors
from siesta.vectors import VectorInput, VectorLike

if TYPE_CHECKING:  # inference on a CPU must not load torch
    from torch import Tensor, nn

__all__ = ["InputLike", "Inputs", "NetworkEngines", "Pipeline", "batched", "resolve_device"]

T = TypeVar("T")
InputLike: TypeAlias = ImageLike | VectorLike
"""An image in any form that siesta reads, or a vector; a learner takes one of the two."""
Inputs = Sequence[npt.NDArray[Any]]
"""What `Input.read` returned for some images or vectors."""
Graphs = Mapping[str, npt.NDArray[np.uint8]]
"""Graphs without weights as bytes (N,), by part: "bottom" and "top"."""

_STORED = "_graph"  # version 0.1 stored graphs as "bottom" and "top" that take folded weights, with other names


class NetworkEngines:
    """A bottom and a top, each with the engine that runs it.

    Attributes:
        network: Bottom and top; the weights of the top are those that `load_top` loaded last.
        input: What the network takes: images or vectors.
        bottom: The engine that runs the bottom.
        top: The engine that runs the top.
        device: The name of the device.
        latent_shape: The shape that the bottom makes of an input, (d, r, s) or (N, d).
    """

    def __init__(
        self,
        network: CutNetwork,
        device: str = "cpu",
        engine: str | None = None,
        graphs: Graphs = MappingProxyType({}),
        latent_shape: LatentShape | None = None,
    ) -> None:
        """Load both engines.

        Args:
            network: Bottom and top with their weights.
            device: The name of the device.
            engine: A key of `ENGINES`; the device decides when None.
            graphs: Graphs that torch exported before, by part; others are exported if an engine needs them.
            latent_shape: The shape that the bottom makes of an input, if it is known; found out when None.
        """
        self.network = network
        self.device = device
        self._engine = choose_engine(engine, device)
        self._backbone: Backbone | None = None
        self._exported = dict(graphs)
        self.input = _input_of(network)
        self.bottom = self._load("bottom", self.input.shape)
        if latent_shape is None:
            latent_shape = self.bottom.run(np.zeros((1, *self.input.shape), np.float32)).shape[1:]
        self.latent_shape = latent_shape
        self.top = self._load("top", self.latent_shape)

    def _load(self, part: str, shape: LatentShape) -> Engine:
        """Load the engine of a part; stored weights are freed then, and read again where something else needs them."""
        with return_freed_memory():
            described = NetworkPart(lambda: self._model(part, shape), lambda: getattr(self.backbone, part))
            loaded = ENGINES[self._engine].load(described, self.device)
            _release(self._weights(part))
        return loaded

    def _weights(self, part: str) -> Weights:
        return self.network.bottom if part == "bottom" else self.network.top

    def _model(self, part: str, shape: LatentShape) -> bytes:
        """Return a part as an ONNX model with its weights."""
        operations, weights = self.network.operations(part, INPUT, OUTPUT), self._weights(part)
        if operations is None:
            return fill_graph(self._exported_graph(part, shape), weights)
        operations, folded = fold_norms(operations, weights)
        _release(weights)
        return fill_graph(encode_graph(operations, folded, shape), folded)

    def _exported_graph(self, part: str, shape: LatentShape) -> bytes:
        """Return the graph of a part of another package's network, without weights."""
        if part not in self._exported:
            require_torch(f"the graph of {self.network.name}")
            from siesta.engines.onnx_graphs import export_graph

            self._exported[part] = np.frombuffer(export_graph(getattr(self.backbone, part), shape), np.uint8)
        return self._exported[part].tobytes()

    def stored_graphs(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Return the graphs that the learner has to hold: those that torch exported."""
        return {part + _STORED: graph for part, graph in self._exported.items()}

    @property
    def backbone(self) -> Backbone:
        """The network in torch, with the weights in use; it is created on first use."""
        if self._backbone is None:
            self._backbone = self.network.torch_backbone()
        return self._backbone

    def load_top(self, weights: Weights) -> None:
        """Load weights into the top and its engine."""
        if not isinstance(weights, StoredTensors):  # the caller may train on with its own
            weights = {name: np.array(array) for name, array in weights.items()}
        self.network = replace(self.network, top=weights)
        if self._backbone is not None:
            from siesta.backbones.arrays import load_arrays

            load_arrays(self._backbone.top, weights)
        self.top = self._load("top", self.latent_shape)

    def latents(self, inputs: Inputs) -> Latents:
        """Return Z (B, *latent_shape) of one or more inputs that were read."""
        return self.bottom.run(self.input.batch(inputs))

    def features(self, latents: Latents) -> npt.NDArray[np.float32]:
        """Return z (B, D) of latents (B, *latent_shape)."""
        return self.top.run(latents)


def _release(weights: Weights) -> None:
    """Free the memory of weights that can be read again."""
    if isinstance(weights, StoredTensors):
        weights.release()


class Pipeline:
    """From inputs to codes, latents and features, with the active weights of a store.

    Attributes:
        engines: Bottom and top.
        codec: The codec between the two.
    """

    def __init__(self, engines: NetworkEngines, codec: Codec) -> None:
        """Take the parts as they are; most callers use `from_store`."""
        self.engines = engines
        self._use_codec(codec)

    @classmethod
    def from_store(
        cls, store: Store, device: str = "cpu", engine: str | None = None, top: Weights | None = None
    ) -> Pipeline:
        """Load the pipeline of a learner.

        Args:
            store: The store of the learner.
            device: The name of the device, as torch has it.
            engine: What runs the network: "onnx" or "torch"; onnx on a CPU and torch elsewhere when None.
            top: Weights of the top, if they are loaded already; those of the active generation when None.
        """
        device = resolve_device(device)
        engine = choose_engine(engine, device)
        network = _stored_network(store, store.snapshot().weights["top"] if top is None else top)
        graphs = _stored_graphs(store) if ENGINES[engine].needs_graph else {}
        codec = CODECS[store.settings["codec"]].from_state(store.constants.read("codec"))
        latent_shape = tuple(store.settings["latent_shape"])
        return cls(NetworkEngines(network, device, engine, graphs, latent_shape), codec)

    @property
    def network(self) -> CutNetwork:
        """Bottom and top with the weights in use."""
        return self.engines.network

    @property
    def spec(self) -> BackboneSpec:
        """What is known about the network, such as the length of z and its training values."""
        return self.engines.network.spec

    @property
    def backbone(self) -> Backbone:
        """The network in torch with the weights in use, for training; it loads torch."""
        return self.engines.backbone

    @property
    def latent_shape(self) -> LatentShape:
        """The shape of Z, (d, r, s) or (N, d)."""
        return self.engines.latent_shape

    @property
    def input(self) -> Input:
        """What the learner takes: images or vectors."""
        return self.engines.input

    @property
    def image_size(self) -> int:
        """Side in pixels of square images."""
        return self.engines.network.input_size

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.engines.device

    def load_top(self, weights: Weights) -> None:
        """Load weights into the top and its engine."""
        self.engines.load_top(weights)

    def load_codec(self, name: str, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the codec by one from `CODECS` with this state."""
        self._use_codec(CODECS[name].from_state(state))

    def with_codec(self, codec: Codec) -> Pipeline:
        """Return this pipeline with another codec; weights and engines are shared."""
        other = copy.copy(self)
        other._use_codec(codec)
        return other

    def _use_codec(self, codec: Codec) -> None:
        self.codec = codec
        self._decoder: nn.Module | None = None

    def single_threaded(self) -> AbstractContextManager[None]:
        """Limit NumPy to one thread while an engine with threads of its own uses the others."""
        return one_blas_thread()

    def encode(self, inputs: Inputs) -> Codes:
        """Return the codes (B, code_bytes) of one or more inputs that were read."""
        return self.codec.encode(self.latents(inputs))

    def encode_measured(self, inputs: Inputs) -> tuple[Codes, float]:
        """Return the codes of inputs, and the codec's relative error on the first of them."""
        latents = self.latents(inputs)
        return self.codec.encode(latents), relative_error(self.codec, latents[:1])

    def latents(self, inputs: Inputs) -> Latents:
        """Return Z (B, *latent_shape) of one or more inputs that were read."""
        return self.engines.latents(inputs)

    def decode(self, codes: Codes) -> Tensor:
        """Return the latents (B, *latent_shape) of codes (B, code_bytes), on the device, for training."""
        import torch

        if self._decoder is None:
            self._decoder = self.codec.decoder(self.latent_shape).to(self.device)
        tensor = torch.from_numpy(np.require(codes, requirements=["C", "W"]))  # torch requires a writable array
        latents: Tensor = self._decoder(tensor.to(self.device))
        return latents

    def features(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Return z (B, D) of codes (B, code_bytes).

        Features are always computed from reconstructed latents, so that wake and sleep see the same input.
        """
        return self.engines.features(self.codec.decode(codes, self.latent_shape))


def _stored_network(store: Store, top: Weights) -> CutNetwork:
    """Return the network of a learner with these weights of the top."""
    settings = store.settings
    linear = make_space(settings.get("space", DEFAULT_SPACE)).linear  # learners of version 0.1 may lack the setting
    bottom = store.constants.read("bottom")
    size = settings["features"] if settings["image_size"] is None else settings["image_size"]
    return CutNetwork(settings["backbone"], settings["cut"], linear, size, bottom, top)


def _input_of(network: CutNetwork) -> Input:
    """Return what a network takes."""
    spec = network.spec
    if spec.takes_vectors:
        return VectorInput(network.input_size)
    return ImageInput(network.input_size, spec.normalization)


def _stored_graphs(store: Store) -> Graphs:
    """Return the graphs that a learner holds; what is damaged can be made anew."""
    with suppress(Damaged):
        return {name.removesuffix(_STORED): graph for name, graph in store.constants.read("graphs").items()}
    return {}


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield consecutive lists of up to `size` items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def resolve_device(name: str) -> str:
    """Return the name of a device; raise `BadInput` if torch cannot compute on it. A CPU needs no torch."""
    if name == "cpu":
        return name
    require_torch(f"the device '{name}'")
    import torch

    try:
        return str(torch.empty(0, device=name).device)
    except (AssertionError, RuntimeError) as error:
        raise BadInput(
            f"torch cannot compute on '{name}' ({str(error).splitlines()[0]}): use 'cpu' or another device"
        ) from error
