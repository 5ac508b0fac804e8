"""OPQ in torch against FAISS's own encode and decode of the same codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import torch

from benchmarks.measure import Row, alternate, row
from siesta.codecs import OPQ, shipped
from siesta.engines import one_torch_thread

__all__ = ["run"]

SHAPE = (80, 14, 14)


def run() -> Iterator[Row]:
    """Seconds of FAISS over ours, one thread each, for one picture and for a batch."""
    found = shipped("efficientnet_lite0", 7)
    assert found is not None
    codec = OPQ.from_state(found[0])
    quantizer = faiss.ProductQuantizer(80, 8, 8)
    faiss.copy_array_to_vector(found[0]["centroids"].numpy().ravel(), quantizer.centroids)
    rotation = found[0]["rotation"].numpy()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # a thread each: two pools in one process would wait for each other
    with one_torch_thread():
        yield from _compared(codec, quantizer, rotation)
    faiss.omp_set_num_threads(threads)


def _compared(codec: OPQ, quantizer: Any, rotation: npt.NDArray[np.float32]) -> Iterator[Row]:
    for batch in (1, 64):
        latents = torch.randn(batch, *SHAPE)
        codes = codec.encode(latents)
        flat = codes.numpy().reshape(-1, 8)

        def faiss_encode(latents: torch.Tensor = latents) -> object:
            return quantizer.compute_codes(latents.permute(0, 2, 3, 1).reshape(-1, 80).numpy() @ rotation.T)

        works = {
            "encode": (lambda latents=latents: codec.encode(latents), faiss_encode),
            "decode": (
                lambda codes=codes: codec.decode(codes, SHAPE),
                lambda flat=flat: quantizer.decode(flat) @ rotation,
            ),
        }
        for name, (ours, theirs) in works.items():
            mine, other = alternate(ours, theirs, repeats=8, block=5)
            yield row(f"codec_{name}_speedup", other / mine, "x FAISS", pictures=batch, ours_ms=round(1e3 * mine, 3))
