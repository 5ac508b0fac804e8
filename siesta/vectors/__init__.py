"""Vectors that another network has computed, as the input of a learner, and files of them."""

from siesta.vectors.files import read_labels, read_vectors, row_keys
from siesta.vectors.inputs import VectorInput, VectorLike

__all__ = ["VectorInput", "VectorLike", "read_labels", "read_vectors", "row_keys"]
