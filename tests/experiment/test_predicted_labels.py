"""Predicted labels as class indices, and what a method must not predict."""

from __future__ import annotations

from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.experiment.metrics import NO_CLASS
from siesta.experiment.predicted_labels import class_indices

INDEX = {"ant": 0, "bee": 1, "owl": 2}


def test_missing_labels_are_filled() -> None:
    indices = class_indices("ncm", [["owl", "ant"], ["bee"], []], (3, 2), INDEX)
    assert indices.tolist() == [[2, 0], [1, NO_CLASS], [NO_CLASS, NO_CLASS]]


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([["ant"]], "predicted labels of 1 for 2 samples: return a list of labels for each"),
        (None, "predicted NoneType for 2 samples"),
        (["ant", "bee"], "predicted 'ant' for a sample: return a list of at most 2 labels"),
        ([["ant", "bee", "owl"], []], r"predicted \['ant', 'bee', 'owl'\] for a sample: return a list of at most 2"),
        ([["ant"], ["cat"]], "predicted 'cat', which is no class of the data set: return known labels"),
        ([["ant"], [1]], "predicted 1, which is no class"),
        ([["ant"], [None]], "predicted None, which is no class"),
        ([["ant", "ant"], []], r"predicted \['ant', 'ant'\] for a sample: return each label once"),
    ],
)
def test_anything_else_names_the_method(predicted: Any, message: str) -> None:
    with pytest.raises(BadInput, match=f"predict_many of method 'ncm' {message}"):
        class_indices("ncm", predicted, (2, 2), INDEX)
