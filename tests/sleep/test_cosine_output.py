"""The trainable head."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.sleep.cosine_output import CosineOutput
from tests.sleep.test_loop import CPU, make_head


def test_logits_are_scaled_cosines_to_the_class_vectors() -> None:
    head = make_head()
    features = torch.rand(5, 24, generator=torch.Generator().manual_seed(1))
    logits = CosineOutput(head, CPU)(features).detach().numpy()
    vectors, z = head.weights(), features.numpy()
    lengths = np.linalg.norm(z, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(logits, 5.0 * (z @ vectors.T) / lengths, rtol=1e-5)


def test_vectors_start_with_length_one_and_the_head_stays_as_it_is() -> None:
    head = make_head()
    before = head.weights().copy()
    output = CosineOutput(head, CPU)
    assert output.vectors.norm(dim=1).tolist() == pytest.approx([1.0] * 3)
    with torch.no_grad():
        output.vectors.zero_()
    assert np.array_equal(head.weights(), before)
