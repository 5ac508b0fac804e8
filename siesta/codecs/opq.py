"""Optimised product quantisation (Ge et al. 2013): rotate each d-vector of Z, store 8 bytes of it.

FAISS learns the rotation and the codebooks. Coding itself runs in torch, on any device: encoding is two matrix
products and an argmax, decoding one lookup in a table of centroids that are already rotated back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.errors import BadInput

__all__ = ["OPQ"]

_BOOKS = 8
_WORDS = 256
_ROWS_AT_ONCE = 1024
"""Keeps the (books, rows, words) scores of `encode` near the processor: 8 MiB."""


class OPQ:
    """A fitted quantiser of `d`-dimensional vectors: 8 codebooks of 256 words each.

    Example:
        >>> codec = OPQ.fit(torch.randn(2000, 16), seed=0)
        >>> latents = torch.randn(3, 16, 2, 2)
        >>> codes = codec.encode(latents)
        >>> codes.shape, codes.dtype
        (torch.Size([3, 32]), torch.uint8)
        >>> codec.decode(codes, (16, 2, 2)).shape
        torch.Size([3, 16, 2, 2])
    """

    name = "opq"

    def __init__(self, rotation: Tensor, centroids: Tensor) -> None:
        """Takes FAISS's own numbers.

        Args:
            rotation: Orthonormal matrix A, (d, d); a vector x is rotated to A x.
            centroids: Codebooks in the rotated space, (8, 256, d / 8).
        """
        self._rotation, self._centroids = rotation.float(), centroids.float()
        books, words, width = centroids.shape
        by_book = self._rotation.reshape(books, width, -1)  # A's rows, book by book: (8, d / 8, d)
        table = torch.einsum("mkw,mwd->mkd", self._centroids, by_book)  # rotated back: (8, 256, d)
        self._table = table.reshape(books * words, -1)
        # |A x - c|^2 is smallest where <A x, c> - |c|^2 / 2 is largest
        self._bias = -0.5 * self._centroids.square().sum(dim=2)[:, None, :]  # (8, 1, 256)
        self._words = self._centroids.transpose(1, 2).contiguous()  # (8, d / 8, 256)
        self._offsets = torch.arange(books) * words

    @classmethod
    def fit(cls, vectors: Tensor, seed: int) -> OPQ:
        """Learns rotation and codebooks from vectors (N, d)."""
        import faiss  # heavy, and not needed to use a fitted codec

        count, width = vectors.shape
        if width % _BOOKS:
            raise BadInput(
                f"OPQ needs a multiple of {_BOOKS} channels and the latents have {width}: choose another cut"
            )
        if count < _WORDS:
            raise BadInput(f"{count} vectors are too few to fit {_WORDS} words: give more pictures")
        data = np.ascontiguousarray(vectors.cpu().numpy(), dtype=np.float32)
        rotation = faiss.OPQMatrix(width, _BOOKS)
        quantizer = faiss.ProductQuantizer(width, _BOOKS, _WORDS.bit_length() - 1)
        quantizer.cp.seed = rotation.pq_seed = seed
        quantizer.cp.min_points_per_centroid = 1
        rotation.pq = quantizer
        rotation.train(data)
        quantizer.train(rotation.apply(data))
        matrix: npt.NDArray[np.float32] = faiss.vector_to_array(rotation.A).reshape(width, width)
        centroids = faiss.vector_to_array(quantizer.centroids).reshape(_BOOKS, _WORDS, width // _BOOKS)
        return cls(torch.from_numpy(matrix.copy()), torch.from_numpy(centroids.copy()))

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> OPQ:
        """The codec that `state()` described."""
        return cls(state["rotation"], state["centroids"])

    def state(self) -> dict[str, Tensor]:
        """Rotation (d, d) and centroids (8, 256, d / 8)."""
        return {"rotation": self._rotation, "centroids": self._centroids}

    def to(self, device: torch.device) -> OPQ:
        """The same codec on another device."""
        return OPQ(self._rotation.to(device), self._centroids.to(device))

    def code_bytes(self, latent_shape: tuple[int, int, int]) -> int:
        """Eight bytes for each of the r * s places."""
        _, rows, columns = latent_shape
        return rows * columns * _BOOKS

    def encode(self, latents: Tensor) -> Tensor:
        """(B, d, r, s) float -> (B, r * s * 8) uint8."""
        vectors = latents.permute(0, 2, 3, 1).reshape(-1, latents.shape[1])
        codes = torch.cat([self._nearest(rows) for rows in torch.split(vectors, _ROWS_AT_ONCE)])
        return codes.reshape(len(latents), -1)

    def _nearest(self, vectors: Tensor) -> Tensor:
        """(N, d) -> (N, 8) uint8: the best word of each book."""
        rotated = (vectors @ self._rotation.T).reshape(len(vectors), _BOOKS, -1).transpose(0, 1)
        scores = torch.baddbmm(self._bias, rotated, self._words)  # (8, N, 256)
        if scores.device.type == "cpu":  # NumPy's argmax is ten times as fast as torch's
            return torch.from_numpy(scores.numpy().argmax(axis=2).astype(np.uint8)).T
        return scores.argmax(dim=2).to(torch.uint8).T

    def decode(self, codes: Tensor, latent_shape: tuple[int, int, int]) -> Tensor:
        """(B, r * s * 8) uint8 -> (B, d, r, s) float, channels-last in memory."""
        channels, rows, columns = latent_shape
        words = codes.reshape(-1, _BOOKS).long() + self._offsets
        vectors = F.embedding_bag(words, self._table, mode="sum")
        return vectors.reshape(len(codes), rows, columns, channels).permute(0, 3, 1, 2)
