"""The labels that a method predicts, checked and turned into class indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.experiment.metrics import NO_CLASS

__all__ = ["class_indices"]


def class_indices(
    method: str, predicted: Sequence[Sequence[str]], shape: tuple[int, int], index_of: Mapping[str, int]
) -> npt.NDArray[np.int32]:
    """Return the classes that a method predicted, best first, `NO_CLASS` where there are fewer.

    Args:
        method: Its name, for errors.
        predicted: The labels of each sample, best first.
        shape: Number of samples, and how many labels each may have.
        index_of: Indices of the classes by label.

    Raises:
        BadInput: The method predicted something else than such labels.

    Example:
        >>> class_indices("ncm", [["owl", "ant"], ["ant"]], (2, 2), {"ant": 0, "bee": 1, "owl": 2})
        array([[ 2,  0],
               [ 0, -1]], dtype=int32)
    """
    samples, most = shape
    indices = np.full(shape, NO_CLASS, dtype=np.int32)
    if not isinstance(predicted, list | tuple) or len(predicted) != samples:
        raise _invalid(
            method, f"predicted {_amount(predicted)} for {samples} samples: return a list of labels for each"
        )
    for place, labels in enumerate(predicted):
        if not isinstance(labels, list | tuple) or len(labels) > most:
            raise _invalid(method, f"predicted {labels!r} for a sample: return a list of at most {most} labels")
        for label in labels:
            if not isinstance(label, str) or label not in index_of:
                raise _invalid(method, f"predicted {label!r}, which is no class of the data set: return known labels")
        if len(set(labels)) < len(labels):
            raise _invalid(method, f"predicted {labels!r} for a sample: return each label once")
        indices[place, : len(labels)] = [index_of[label] for label in labels]
    return indices


def _amount(predicted: object) -> str:
    """Return how many samples were answered, or the type of an answer that is no list."""
    return f"labels of {len(predicted)}" if isinstance(predicted, list | tuple) else type(predicted).__name__


def _invalid(method: str, what: str) -> BadInput:
    return BadInput(f"predict_many of method '{method}' {what}")
