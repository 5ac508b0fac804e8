"""Latency of learning and predicting one image, relative to the bare network and to the reference implementation.

The reference uses eager torch and FAISS's own calls: network below the cut, rotate, encode, decode, rotate back,
network above the cut, class mean.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.learners import NETWORKS, learner_of, noise
from benchmarks.measure import Row, alternate, row
from siesta.images import normalize
from siesta.learner import Siesta

__all__ = ["run"]

CLASSES = 10


def run(image_size: int = 224, networks: tuple[str, ...] = NETWORKS[:2]) -> Iterator[Row]:
    """Yield latencies for each network, then the time to open a learner."""
    for name in networks:
        learner = learner_of(name, image_size)
        images = noise(2 * CLASSES, image_size)
        learner.learn_many(images, [f"class {index % CLASSES}" for index in range(len(images))])
        yield from _latencies(learner, images[0], {"backbone": name, "image_size": image_size})
    yield from _opening(image_size)


def _latencies(learner: Siesta, image: Any, config: dict[str, Any]) -> Iterator[Row]:
    pipeline = learner.pipeline
    pixels = normalize([image], pipeline.spec.normalization)
    latents = np.ascontiguousarray(pipeline.codec.decode(learner.encode([image]), pipeline.latent_shape))
    reference = _Reference(learner)
    engines, backbone = pipeline.engines, pipeline.backbone

    def bare() -> None:
        engines.bottom.run(pixels)
        engines.top.run(latents)

    def bare_torch() -> None:
        with torch.inference_mode():
            backbone.bottom(torch.from_numpy(pixels))
            backbone.top(torch.from_numpy(latents))

    works = {
        "bare": bare,
        "bare_torch": bare_torch,
        "predict": lambda: learner.predict_one(image),
        "learn": lambda: learner.learn_one(image, "class 0"),
        "reference_predict": lambda: reference.predict(image),
        "reference_learn": lambda: reference.learn(image, 0),
    }
    times = dict(zip(works, alternate(*works.values(), repeats=10, block=6), strict=True))
    for name in ("bare", "predict", "learn"):
        yield row(f"{name}_ms", 1e3 * times[name], "ms", **config, engine="onnx")
    yield row("engine_speedup", times["bare_torch"] / times["bare"], "x torch", **config)
    for verb in ("predict", "learn"):
        yield row(f"{verb}_over_bare", times[verb] / times["bare"], "x", "<= 1.3", **config)
        yield row(f"{verb}_speedup", times[f"reference_{verb}"] / times[verb], "x reference", ">= 6", **config)


class _Reference:
    """Learning and predicting as the published scripts do it, with eager torch and FAISS."""

    def __init__(self, learner: Siesta) -> None:
        state = learner.pipeline.codec.state()
        width = state["rotation"].shape[0]
        self._network = learner.pipeline.backbone
        self._shape = learner.pipeline.latent_shape
        self._rotation = faiss.LinearTransform(width, width, False)
        faiss.copy_array_to_vector(state["rotation"].ravel(), self._rotation.A)
        self._rotation.is_trained = self._rotation.is_orthonormal = True
        self._quantizer = faiss.ProductQuantizer(width, 8, 8)
        faiss.copy_array_to_vector(state["centroids"].ravel(), self._quantizer.centroids)
        self._means = torch.tensor(learner.head.weights())
        self._counts = np.ones(len(self._means))
        self._memory: dict[int, tuple[Any, int]] = {}

    @torch.no_grad()
    def _feature(self, image: Any) -> tuple[torch.Tensor, Any]:
        channels, rows, columns = self._shape
        latents = self._network.bottom(torch.from_numpy(normalize([image], self._network.normalization)))
        vectors = np.ascontiguousarray(latents.permute(0, 2, 3, 1).reshape(-1, channels).numpy())
        codes = self._quantizer.compute_codes(self._rotation.apply(vectors))
        decoded = self._rotation.reverse_transform(self._quantizer.decode(codes))
        decoded = torch.from_numpy(decoded).reshape(1, rows, columns, channels).permute(0, 3, 1, 2)
        return self._network.top(decoded), codes

    def predict(self, image: Any) -> int:
        feature, _ = self._feature(image)
        return int((F.normalize(feature) @ F.normalize(self._means).T).argmax())

    def learn(self, image: Any, label: int) -> None:
        feature, codes = self._feature(image)
        self._memory[len(self._memory)] = codes, label
        self._means[label] = (self._counts[label] * self._means[label] + feature[0]) / (self._counts[label] + 1)
        self._counts[label] += 1


def _opening(image_size: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "open.siesta"
        with learner_of("efficientnet_lite0", image_size, path) as learner:
            learner.learn_many(noise(4, image_size), ["a", "b", "c", "d"])
        command = [sys.executable, "-m", "benchmarks.latency", str(path)]
        times = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3)]
    yield row("open_and_first_answer", sorted(times)[1], "s", "< 2", image_size=image_size)


def _child(path: str) -> None:
    import time

    import onnxruntime  # noqa: F401  (import time is not measured)

    image = noise(1, 256)[0]
    start = time.perf_counter()
    with Siesta.open(path, read_only=True) as learner:
        learner.predict_one(image)
    print(json.dumps(time.perf_counter() - start))


if __name__ == "__main__":
    _child(*sys.argv[1:])
