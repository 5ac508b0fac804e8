"""OPQ in torch against FAISS itself and against plain NumPy."""

from __future__ import annotations

import faiss
import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta.codecs import OPQ, relative_error, shipped
from siesta.errors import BadInput


@pytest.fixture(scope="module")
def codec() -> OPQ:
    found = shipped("efficientnet_lite0", 7)
    assert found is not None
    return OPQ.from_state(found[0])


@pytest.fixture(scope="module")
def vectors() -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(2000, 80)).astype(np.float32)


def _faiss_parts(codec: OPQ) -> tuple[faiss.ProductQuantizer, npt.NDArray[np.float32]]:
    state = codec.state()
    quantizer = faiss.ProductQuantizer(80, 8, 8)
    faiss.copy_array_to_vector(state["centroids"].numpy().ravel(), quantizer.centroids)
    return quantizer, state["rotation"].numpy()


@pytest.mark.parametrize("batch", [1, 3, 20])
def test_codes_and_reconstructions_equal_those_of_faiss(
    codec: OPQ, vectors: npt.NDArray[np.float32], batch: int
) -> None:
    data = vectors[: batch * 100]
    quantizer, rotation = _faiss_parts(codec)
    latents = torch.from_numpy(data.reshape(batch, 10, 10, 80)).permute(0, 3, 1, 2)
    ours = codec.encode(latents).numpy().reshape(-1, 8)
    theirs = quantizer.compute_codes(data @ rotation.T)
    assert (ours == theirs).mean() > 0.9999  # a tie in float32 may go either way
    again = codec.decode(torch.from_numpy(theirs.reshape(batch, -1)), (80, 10, 10)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(again.numpy().reshape(-1, 80), quantizer.decode(theirs) @ rotation, atol=1e-5)


def test_codes_are_nearest_centroids(codec: OPQ, vectors: npt.NDArray[np.float32]) -> None:
    state = codec.state()
    rotated = vectors[:50] @ state["rotation"].numpy().T
    distances = ((rotated.reshape(50, 8, 1, 10) - state["centroids"].numpy()) ** 2).sum(axis=3)
    codes = codec.encode(torch.from_numpy(vectors[:50])[:, :, None, None])
    chosen = np.take_along_axis(distances, codes.numpy().astype(int)[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, distances.min(axis=2), rtol=1e-4, atol=1e-4)


def test_relative_error_is_the_mean_over_vectors(codec: OPQ) -> None:
    latents = torch.randn(2, 80, 3, 3)
    latents[0, :, 0, 0] = 0  # does not count
    again = codec.decode(codec.encode(latents), (80, 3, 3))
    a, b = (x.permute(0, 2, 3, 1).reshape(-1, 80).numpy() for x in (latents, again))
    kept = (a**2).sum(axis=1) > 0
    expected = (((a - b) ** 2).sum(axis=1)[kept] / (a**2).sum(axis=1)[kept]).mean()
    assert relative_error(codec, latents) == pytest.approx(expected, rel=1e-5)


def test_fit_is_as_good_as_faiss_and_reproducible() -> None:
    mixing = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))
    data = torch.randn(4000, 16, generator=torch.Generator().manual_seed(1)) @ mixing
    codec = OPQ.fit(data, seed=3)
    assert torch.equal(codec.state()["centroids"], OPQ.fit(data, seed=3).state()["centroids"])
    index = faiss.index_factory(16, "OPQ8,PQ8x8np")  # without an order of the words, which takes longest
    index.train(data.numpy())
    theirs = index.sa_decode(index.sa_encode(data.numpy()))
    reference = float((((data.numpy() - theirs) ** 2).sum(1) / (data.numpy() ** 2).sum(1)).mean())
    assert relative_error(codec, data[:, :, None, None]) < 1.05 * reference


def test_fit_says_what_it_needs() -> None:
    with pytest.raises(BadInput, match="multiple of 8"):
        OPQ.fit(torch.randn(1000, 12), seed=0)
    with pytest.raises(BadInput, match="too few"):
        OPQ.fit(torch.randn(100, 16), seed=0)


def test_shipped_codec_states_its_provenance() -> None:
    found = shipped("efficientnet_lite0", 7)
    assert found is not None
    facts = found[1]
    assert {"command", "base", "unseen", "relative_error", "date", "commit", "machine"} <= set(facts)
    assert 0 < facts["relative_error"]["unseen"] < 0.3
    assert shipped("efficientnet_lite0", 3) is None
