"""Optimised product quantisation (Ge et al. 2013): each d-vector of Z is rotated and stored in a few bytes.

FAISS learns the rotation and the codebooks. Encoding is two matrix products and an argmax, decoding is one lookup for
each codebook in a table of centroids that are already rotated back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from siesta.codecs.blas import one_blas_thread
from siesta.codecs.latents import from_vectors, is_map, to_vectors, vector_count
from siesta.contracts import Codes, Latents, LatentShape, Normalization
from siesta.errors import BadInput
from siesta.extras import require

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["OPQ"]

_MAX_BITS = 8
_ENCODED_ROWS = 1024
"""Rows that are encoded together; their scores for a codebook (rows, centroids) take 1 MiB and fit into the cache."""
_DECODED_ROWS = 512


class OPQ:
    """Quantises each vector of the latents to a few bytes, one for each codebook, by default 8.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> vectors = rng.normal(size=(300, 16)).astype(np.float32)
        >>> codec = OPQ.fit(vectors, seed=0)
        >>> codes = codec.encode(rng.normal(size=(3, 16, 2, 2)).astype(np.float32))
        >>> codes.shape, codes.dtype
        ((3, 32), dtype('uint8'))
        >>> codec.decode(codes, (16, 2, 2)).shape
        (3, 16, 2, 2)
    """

    name: ClassVar[str] = "opq"
    cut: ClassVar[int | None] = None
    needs_fit: ClassVar[bool] = True

    def __init__(self, rotation: npt.NDArray[np.float32], centroids: npt.NDArray[np.float32]) -> None:
        """Create a codec from the numbers that FAISS has learned.

        Args:
            rotation: Orthonormal matrix A, (d, d); a vector x is rotated to A x.
            centroids: Codebooks in the rotated space, (M, 2^bits, d / M) for M codebooks.
        """
        self._rotation = np.asarray(rotation, dtype=np.float32)
        self._centroids = np.asarray(centroids, dtype=np.float32)
        books, _, width = self._centroids.shape
        blocks = self._rotation.reshape(books, width, -1)  # the rows of A by codebook: (M, d / M, d)
        self._table = np.stack(list(map(_fused_product, self._centroids, blocks)))  # rotated back: (M, 2^bits, d)
        # |A x - c|^2 is smallest where <A x, c> - |c|^2 / 2 is largest; the second term is the weight of a constant 1
        bias = -0.5 * np.square(self._centroids).sum(axis=2)[:, None, :]
        self._scoring = np.concatenate([self._centroids.transpose(0, 2, 1), bias], axis=1)  # (M, d / M + 1, 2^bits)

    @classmethod
    def fit(
        cls,
        vectors: Latents,
        seed: int,
        _normalization: Normalization | None = None,
        *,
        codebooks: int = 8,
        bits: int = 8,
    ) -> Self:
        """Learn rotation and codebooks from vectors (N, d).

        Args:
            vectors: Vectors of latents, (N, d).
            seed: Seed of the fit.
            codebooks: M, the number of parts of a vector; each takes one byte.
            bits: Each codebook has 2^bits centroids; 8 at most.
        """
        require("faiss", "fitting a codec")
        import faiss  # slow to import, and not needed to use a fitted codec

        count, width = vectors.shape
        cls.check((count, width), codebooks=codebooks, bits=bits)
        size = 2**bits
        if count < size:
            raise BadInput(f"{count} vectors are too few to fit {size} centroids: give more images")
        if count < width:  # FAISS would end the process
            raise BadInput(f"{count} vectors are too few to fit a rotation of {width} channels: give more images")
        data = np.ascontiguousarray(vectors, dtype=np.float32)
        rotation = faiss.OPQMatrix(width, codebooks)
        quantizer = faiss.ProductQuantizer(width, codebooks, bits)
        quantizer.cp.seed = rotation.pq_seed = seed
        quantizer.cp.min_points_per_centroid = 1
        rotation.pq = quantizer
        rotation.train(data)
        quantizer.train(rotation.apply(data))
        matrix: npt.NDArray[np.float32] = faiss.vector_to_array(rotation.A).reshape(width, width)
        centroids = faiss.vector_to_array(quantizer.centroids).reshape(codebooks, size, width // codebooks)
        return cls(matrix.copy(), centroids.copy())

    @classmethod
    def check(cls, latent_shape: LatentShape, *, codebooks: int = 8, bits: int = 8) -> None:
        """Raise `BadInput` unless vectors of these latents can be cut into so many parts."""
        width = latent_shape[0 if is_map(latent_shape) else 1]
        if not 1 <= bits <= _MAX_BITS:
            raise BadInput(f"option 'bits' of codec opq is {bits}: give 1 to {_MAX_BITS}, as a code is a byte")
        if codebooks < 1:
            raise BadInput(f"option 'codebooks' of codec opq is {codebooks}: give 1 or more")
        if width % codebooks:
            raise BadInput(
                f"OPQ needs a multiple of {codebooks} channels and the latents have {width}: "
                "choose another cut, or another number of codebooks"
            )

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Create a codec from what `state()` returned."""
        return cls(state["rotation"], state["centroids"])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return rotation (d, d) and centroids (M, 2^bits, d / M)."""
        return {"rotation": self._rotation, "centroids": self._centroids}

    @property
    def options(self) -> dict[str, Any]:
        """The number of codebooks and the bits of a code."""
        books, size, _ = self._centroids.shape
        return {"codebooks": books, "bits": size.bit_length() - 1}

    def code_bytes(self, latent_shape: LatentShape) -> int:
        """Return a byte for each codebook and each of the r * s positions or N tokens."""
        return vector_count(latent_shape) * len(self._centroids)

    def encode_flops(self, latent_shape: LatentShape) -> int:
        """Return the FLOPs of the rotation and of the products with all centroids."""
        _, size, _ = self._centroids.shape
        width = len(self._rotation)
        flops: int = 2 * width * (width + size)
        return vector_count(latent_shape) * flops

    def encode(self, latents: Latents) -> Codes:
        """(B, d, r, s) -> (B, r * s * M) uint8, or (B, N, d) -> (B, N * M)."""
        vectors = to_vectors(latents)
        books, inputs, _ = self._scoring.shape
        codes = np.empty((len(vectors), books), np.uint8)
        scores = np.empty((min(len(vectors), _ENCODED_ROWS), self._scoring.shape[2]), np.float32)
        with one_blas_thread():
            for start in range(0, len(vectors), _ENCODED_ROWS):
                rotated = vectors[start : start + _ENCODED_ROWS] @ self._rotation.T
                parts = np.ones((books, len(rotated), inputs), np.float32)  # each with a constant 1 at its end
                parts[:, :, :-1] = rotated.reshape(len(rotated), books, -1).transpose(1, 0, 2)
                for book, (part, scoring) in enumerate(zip(parts, self._scoring, strict=True)):
                    found = np.matmul(part, scoring, out=scores[: len(part)])  # (rows, 2^bits)
                    codes[start : start + len(part), book] = found.argmax(axis=1)
        return codes.reshape(len(latents), -1)

    def decode(self, codes: Codes, latent_shape: LatentShape) -> Latents:
        """(B, r * s * M) uint8 -> (B, d, r, s), channels-last in memory, or (B, N * M) -> (B, N, d)."""
        books, _, width = self._table.shape
        rows = codes.reshape(-1, books)
        vectors = np.empty((len(rows), width), np.float32)
        looked_up = np.empty((min(len(rows), _DECODED_ROWS), width), np.float32)
        for start in range(0, len(rows), _DECODED_ROWS):
            chunk = rows[start : start + _DECODED_ROWS]
            total = vectors[start : start + _DECODED_ROWS]
            np.take(self._table[0], chunk[:, 0], axis=0, out=total, mode="clip")  # "clip" writes without a copy
            for book in range(1, books):
                total += np.take(self._table[book], chunk[:, book], axis=0, out=looked_up[: len(chunk)], mode="clip")
        return from_vectors(vectors, latent_shape)

    def decoder(self, latent_shape: LatentShape) -> nn.Module:
        """Return the same decoding in torch: one `embedding_bag` over the tables of all codebooks."""
        from siesta.codecs.decoder import Decoder

        books, size, width = self._table.shape
        offsets = np.arange(books) * size
        return Decoder(partial(_decode, latent_shape), table=self._table.reshape(-1, width), offsets=offsets)


def _fused_product(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a matrix product, (m, k) and (k, n) -> (m, n), as fused multiply-adds from the first k to the last.

    This is how torch rounds it, so what was recorded with torch is reproduced bit for bit on every machine.
    """
    total = np.zeros((len(first), second.shape[1]), np.float32)
    for column, row in zip(first.T.astype(np.float64), second.astype(np.float64), strict=True):
        product = np.multiply.outer(column, row)  # exact, so that the sum is rounded once
        product += total
        total[...] = product
    return total


def _decode(latent_shape: LatentShape, codes: Tensor, *, table: Tensor, offsets: Tensor) -> Tensor:
    """(B, r * s * M) uint8 -> (B, d, r, s) float, channels-last in memory, or (B, N * M) -> (B, N, d)."""
    from torch.nn import functional as F

    rows_of_table = codes.reshape(-1, len(offsets)).long() + offsets
    return from_vectors(F.embedding_bag(rows_of_table, table, mode="sum"), latent_shape)
