"""Batch norms of a network that does not learn, as part of the convolutions before them.

ONNX Runtime does the same when it loads a graph, with several copies of the weights in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Operation

__all__ = ["fold_norms"]

Arrays = Mapping[str, npt.NDArray[Any]]

_BIAS = ".folded_bias"  # follows the name of a convolution's weight


def fold_norms(operations: Sequence[Operation], weights: Arrays) -> tuple[list[Operation], dict[str, npt.NDArray[Any]]]:
    """Return operations without the batch norms that alone take the result of a convolution, and their weights.

    The new weights are those that ONNX Runtime computes, to the bit.

    Args:
        operations: Of a part of a network, in order.
        weights: Of that part.

    Example:
        >>> layer = [
        ...     Operation("Conv", ("x", "filters"), "found"),
        ...     Operation("BatchNormalization", ("found", "scale", "shift", "mean", "variance"), "y", {"epsilon": 0.0}),
        ... ]
        >>> numbers = {"filters": np.ones((1, 1, 1, 1)), "scale": [6], "shift": [5], "mean": [1], "variance": [4]}
        >>> folded, arrays = fold_norms(layer, {name: np.float32(array) for name, array in numbers.items()})
        >>> [(each.kind, each.output) for each in folded], [array.ravel().tolist() for array in arrays.values()]
        ([('Conv', 'y')], [[3.0], [2.0]])
    """
    takers = Counter(name for each in operations for name in each.inputs)
    convolutions = {each.output: each for each in operations if each.kind == "Conv" and takers[each.output] == 1}
    replaced: dict[str, Operation | None] = {}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for norm in operations:
        convolution = convolutions.get(norm.inputs[0]) if norm.kind == "BatchNormalization" else None
        if convolution is not None:
            replaced[convolution.output] = None
            replaced[norm.output] = _folded(convolution, norm, weights, arrays)
    folded = [replaced.get(each.output, each) for each in operations]
    left = [each for each in folded if each is not None]
    used = {name for each in left for name in each.inputs}
    return left, {name: array for name, array in weights.items() if name in used and name not in arrays} | arrays


def _folded(convolution: Operation, norm: Operation, weights: Arrays, arrays: dict[str, npt.NDArray[Any]]) -> Operation:
    """Return a convolution that includes the batch norm after it; put its weights into `arrays`."""
    x, filters, *bias = convolution.inputs
    scale, shift, mean, variance = (weights[name] for name in norm.inputs[1:])
    epsilon = np.array(norm.attributes["epsilon"], np.float32)
    factor = scale / np.sqrt(variance + epsilon)
    arrays[filters] = weights[filters] * factor.reshape(-1, *(1,) * (weights[filters].ndim - 1))
    centre = weights[bias[0]] - mean if bias else -mean
    arrays[filters + _BIAS] = centre * factor + shift
    return Operation("Conv", (x, filters, filters + _BIAS), norm.output, convolution.attributes)
