"""OPQ in NumPy, and its decoding in torch, against FAISS's own encode and decode of the same codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import torch

from benchmarks.measure import Row, alternate, row
from siesta.codecs import OPQ, fitted_codec
from siesta.codecs.latents import to_vectors
from siesta.contracts import Codes, Latents

__all__ = ["run"]

SHAPE = (80, 14, 14)


def run() -> Iterator[Row]:
    """Yield the speed relative to FAISS, both on one thread, for one image and for a batch."""
    fitted = fitted_codec("efficientnet_lite0", 7)
    assert fitted is not None
    arrays, _ = fitted
    codec = OPQ.from_state(arrays)
    quantizer = faiss.ProductQuantizer(80, 8, 8)
    faiss.copy_array_to_vector(arrays["centroids"].ravel(), quantizer.centroids)
    rotation = arrays["rotation"]
    threads = faiss.omp_get_max_threads()
    torch_threads = torch.get_num_threads()
    faiss.omp_set_num_threads(1)  # two thread pools in one process would block each other
    torch.set_num_threads(1)
    yield from _comparison(codec, quantizer, rotation)
    torch.set_num_threads(torch_threads)
    faiss.omp_set_num_threads(threads)


def _comparison(codec: OPQ, quantizer: Any, rotation: npt.NDArray[np.float32]) -> Iterator[Row]:
    for batch in (1, 64):
        latents = np.random.default_rng(0).normal(size=(batch, *SHAPE)).astype(np.float32)
        codes = codec.encode(latents)
        flat = codes.reshape(-1, 8)

        def faiss_encode(latents: Latents = latents) -> object:
            return quantizer.compute_codes(to_vectors(latents) @ rotation.T)

        def faiss_decode(flat: Codes = flat) -> object:
            return quantizer.decode(flat) @ rotation

        works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "encode": (partial(codec.encode, latents), faiss_encode),
            "decode": (partial(codec.decode, codes, SHAPE), faiss_decode),
            "decoder": (partial(codec.decoder(SHAPE), torch.from_numpy(codes)), faiss_decode),
        }
        for name, (ours, faiss_call) in works.items():
            our_time, faiss_time = alternate(ours, faiss_call, repeats=8, block=5)
            yield row(
                f"codec_{name}_speedup",
                faiss_time / our_time,
                "x FAISS",
                pictures=batch,
                ours_ms=round(1e3 * our_time, 3),
            )
