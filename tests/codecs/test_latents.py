"""Both shapes of latents, as vectors and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.codecs.latents import from_vectors, to_vectors, vector_axis, vector_count
from siesta.contracts import LatentShape


@pytest.mark.parametrize("shape", [(5, 2, 3), (6, 5)])
@pytest.mark.parametrize("samples", [0, 1, 4])
def test_vectors_are_those_of_each_position_and_give_the_latents_back(shape: LatentShape, samples: int) -> None:
    latents = torch.arange(float(samples * 30)).reshape(samples, *shape)
    vectors = to_vectors(latents)
    assert vectors.shape == (samples * vector_count(shape), latents.shape[vector_axis(shape)])
    assert torch.equal(from_vectors(vectors, shape), latents)
    assert np.array_equal(to_vectors(latents.numpy()), vectors.numpy())
    assert np.array_equal(from_vectors(vectors.numpy(), shape), latents.numpy())
    if samples:
        expected = latents[0, :, 0, 1] if len(shape) == 3 else latents[0, 1]
        assert torch.equal(vectors[1], expected), "row by row, as codes are stored"
