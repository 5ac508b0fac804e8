"""A learner as one ONNX file: from pixels to scores, with its labels, for any ONNX runtime."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta import __version__
from siesta.codecs.latents import is_map
from siesta.contracts import Attribute, Codec, LatentShape, Operation
from siesta.engines.onnx_format import INPUT, OUTPUT, encode_graph, fill_graph
from siesta.errors import BadInput
from siesta.files import disk_errors, replace_file
from siesta.head import Head
from siesta.images import CROP_SHARE
from siesta.learner.state import LearnerState
from siesta.pipeline import Pipeline
from siesta.store import Store

__all__ = ["ExportReport", "export_learner"]

_SMALLEST = np.array([np.finfo(np.float32).tiny])
_TINY = np.array([1e-12], np.float32)  # the least length that is divided by


@dataclass(frozen=True)
class ExportReport:
    """What was exported.

    Attributes:
        classes: Number of classes.
        generation: Number of the generation of weights.
        bytes: Size of the file.
        rejections: Number of rejections of the learner, none of which is part of the file.
    """

    classes: int
    generation: int
    bytes: int
    rejections: int = 0


def export_learner(path: str | Path, file: str | Path) -> ExportReport:
    """Write what a learner predicts now into one ONNX file; other processes may learn or sleep meanwhile.

    Its input are images as `Siesta.read` returns them, (B, S, S, 3) uint8, or vectors (B, d) float32; its output are
    the scores (B, K) of `predict_many`, whose labels are in the metadata.

    Args:
        path: The learner's directory.
        file: The file to write; an existing one is replaced.
    """
    with contextlib.closing(Store.open(Path(path), "read")) as store:
        state = LearnerState(store, "cpu", "onnx")
        if not len(state.classifier):
            raise BadInput("this learner was not taught anything yet: teach it with learn_one or `siesta learn`")
        data = _file_of(state)
        file = Path(file)
        with disk_errors(file):
            replace_file(file, data)
        return ExportReport(len(state.classifier), state.generation, len(data), len(state.rejections))


def _file_of(state: LearnerState) -> bytes:
    pipeline = state.pipeline
    network = pipeline.network
    graph = _Graph()
    x = graph.read(pipeline)
    for part, weights in (("bottom", network.bottom), ("top", network.top)):
        operations = network.operations(part, x, f"{part}.output")
        if operations is None:
            raise BadInput(f"the network {network.name} of another package cannot be exported: export it with torch")
        x = graph.extend(part, operations, weights)
        if part == "bottom":
            x = graph.quantised(x, pipeline.codec, pipeline.latent_shape)
    graph.scored(x, state)
    labels = [state.labels[class_id] for class_id in state.classifier.class_ids.tolist()]
    metadata = {
        "labels": json.dumps(labels, ensure_ascii=False),
        "generation": str(state.generation),
        "siesta": __version__,
    }
    if pipeline.spec.takes_vectors:
        return graph.model([network.input_size], "float32", {**metadata, "features": str(network.input_size)})
    size = network.input_size
    crop = f"resize the short side to image_size / {CROP_SHARE}, bicubic; then crop the centre"
    return graph.model([size, size, 3], "uint8", {**metadata, "image_size": str(size), "crop": crop})


class _Graph:
    """Operations and the arrays that they take.

    Attributes:
        operations: In order.
        weights: Arrays by name.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.weights: dict[str, npt.NDArray[Any]] = {}

    def add(self, kind: str, *inputs: str | npt.NDArray[Any], **attributes: Attribute) -> str:
        """Add an operation on values and arrays; return the name of its output."""
        names = []
        for given in inputs:
            if not isinstance(given, str):
                name = f"constant.{len(self.weights)}"
                self.weights[name] = given
                given = name
            names.append(given)
        output = f"value.{len(self.operations)}"
        self.operations.append(Operation(kind, tuple(names), output, attributes))
        return output

    def model(self, shape: Sequence[int], kind: str, metadata: Mapping[str, str]) -> bytes:
        """Return the file, whose input has this shape without the batch, and numbers of this kind."""
        graph = encode_graph(self.operations, self.weights, shape, kind=kind, metadata=metadata)
        return fill_graph(graph, self.weights)

    def extend(self, prefix: str, operations: Iterable[Operation], weights: Any) -> str:
        """Add operations that take these weights, under a prefix of their own; return the last output."""
        for each in operations:
            inputs = tuple(f"{prefix}.{name}" if name in weights else name for name in each.inputs)
            self.operations.append(Operation(each.kind, inputs, each.output, each.attributes))
        self.weights |= {f"{prefix}.{name}": array for name, array in weights.items()}
        return self.operations[-1].output

    def read(self, pipeline: Pipeline) -> str:
        """Add what makes the input of a network of images (B, S, S, 3) uint8 or of vectors (B, d)."""
        if pipeline.spec.takes_vectors:
            return self.add("Reshape", INPUT, np.array([-1, *pipeline.input.shape]))
        return self.normalized(INPUT, pipeline.spec.normalization.mean, pipeline.spec.normalization.std)

    def normalized(self, pixels: str, mean: tuple[float, ...], std: tuple[float, ...]) -> str:
        """Add what `images.normalize` does to (B, S, S, 3)."""
        x = self.add("Transpose", self.add("Cast", pixels, to=1), perm=[0, 3, 1, 2])
        for kind, values in (("Sub", mean), ("Div", std)):
            x = self.add(kind, x, np.array(values, np.float32).reshape(1, 3, 1, 1))
        return x

    def quantised(self, x: str, codec: Codec, shape: LatentShape) -> str:
        """Add what encoding and decoding latents (B, *shape) leaves of them."""
        if codec.name == "raw":
            return x  # pixels are stored as they are
        if codec.name == "float16":
            return self.halved(x, shape)
        if codec.name != "opq":
            raise BadInput(f"the codec {codec.name} cannot be exported: only opq, float16 and raw can")
        return self.product_quantised(x, codec, shape)

    def halved(self, x: str, shape: LatentShape) -> str:
        """Add what the codec float16 leaves of latents (B, *shape): shares of the largest number in 16 bits."""
        rows = self.add("Reshape", x, np.array([-1, math.prod(shape)]))
        largest = self.add("Max", self.add("ReduceMax", self.add("Abs", rows), np.array([1])), _SMALLEST)
        shares = self.add("Cast", self.add("Cast", self.add("Div", rows, largest), to=10), to=1)
        return self.add("Reshape", self.add("Mul", largest, shares), np.array([-1, *shape]))

    def product_quantised(self, x: str, codec: Codec, shape: LatentShape) -> str:
        """Add what the codec opq leaves of latents (B, *shape)."""
        state = codec.state()
        rotation, centroids = state["rotation"], state["centroids"]  # (d, d), (M, 2^bits, d / M)
        books, size, width = centroids.shape
        blocks = rotation.reshape(books, width, -1)
        if is_map(shape):
            x = self.add("Transpose", x, perm=[0, 2, 3, 1])
        vectors = self.add("Reshape", x, np.array([-1, len(rotation)]))
        parts = self.add("Reshape", self.add("MatMul", vectors, rotation.T), np.array([-1, books, width]))
        scores = self.add("MatMul", self.add("Transpose", parts, perm=[1, 0, 2]), centroids.transpose(0, 2, 1))
        scores = self.add("Sub", scores, 0.5 * np.square(centroids).sum(axis=2)[:, None, :])
        codes = self.add("ArgMax", scores, axis=2, keepdims=0)  # (M, vectors)
        rows = self.add("Add", codes, size * np.arange(books)[:, None])
        decoded = self.add("Gather", (centroids @ blocks).reshape(books * size, -1), rows)
        total = self.add("ReduceSum", decoded, np.array([0]), keepdims=0)
        if not is_map(shape):
            return self.add("Reshape", total, np.array([-1, *shape]))
        channels, height, columns = shape
        maps = self.add("Reshape", total, np.array([-1, height, columns, channels]))
        return self.add("Transpose", maps, perm=[0, 3, 1, 2])

    def scored(self, z: str, state: LearnerState) -> None:
        """Add the head, and the softmax with the temperature of the calibration."""
        classifier, temperature = state.classifier, state.confidence.temperature
        if isinstance(classifier, Head):
            length = self.add("ReduceL2", z, np.array([1]))
            unit = self.add("Div", z, self.add("Max", length, _TINY))
            logits = self._product(unit, classifier.scale / temperature * classifier.directions())
        else:
            weights, offsets = classifier.affine()
            sizes = self.add("Abs", z)
            length = self.add("Sqrt", self.add("ReduceSum", sizes, np.array([1])))
            roots = self.add("Mul", self.add("Sign", z), self.add("Sqrt", sizes))
            unit = self.add("Div", roots, self.add("Max", length, _TINY))
            logits = self._product(unit, weights / temperature)
            logits = self.add("Sub", logits, (offsets / temperature).astype(np.float32))
        self.operations.append(Operation("Softmax", (logits,), OUTPUT, {"axis": 1}))

    def _product(self, unit: str, weights: npt.NDArray[Any]) -> str:
        return self.add("MatMul", unit, weights.T.astype(np.float32))
