"""A step's sizes."""

from __future__ import annotations

import numpy as np

from siesta.methods.batch.step import Step


def test_a_step_has_new_classes_and_all_its_images() -> None:
    step = Step(1, 4, 6, np.array([9, 8]), np.array([1]))
    assert step.new == 2 and step.ids.tolist() == [1, 9, 8]
