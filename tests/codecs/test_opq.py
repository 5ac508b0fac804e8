"""OPQ against FAISS itself, against the same computation in torch, and against plain formulas."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.backbones import RANDOM, make_backbone
from siesta.codecs import OPQ, fitted_codec, relative_error
from siesta.contracts import Latents
from siesta.errors import BadInput
from siesta.images import normalize, read_image

State = dict[str, npt.NDArray[np.float32]]


@pytest.fixture(scope="module")
def state() -> State:
    found = fitted_codec("efficientnet_lite0", 7)
    assert found is not None
    return {name: found[0][name] for name in ("rotation", "centroids")}


@pytest.fixture(scope="module")
def codec(state: State) -> OPQ:
    return OPQ.from_state(state)


@pytest.fixture(scope="module")
def vectors() -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(2000, 80)).astype(np.float32)


def torch_codes(state: State, latents: Tensor) -> Tensor:
    """Encode as version 0.1 did: a rotation, and the largest <A x, c> - |c|^2 / 2 of each codebook."""
    rotation, centroids = (torch.from_numpy(state[name]) for name in ("rotation", "centroids"))
    vectors = latents.permute(0, 2, 3, 1).reshape(-1, 80)
    rotated = (vectors @ rotation.T).reshape(len(vectors), 8, 10).transpose(0, 1)
    bias = -0.5 * centroids.square().sum(dim=2)[:, None, :]
    scores = torch.baddbmm(bias, rotated, centroids.transpose(1, 2))
    return scores.argmax(dim=2).to(torch.uint8).T.reshape(len(latents), -1)


def torch_decoded(state: State, codes: Tensor, rows: int) -> Tensor:
    """Decode as version 0.1 did: a bag of centroids that are rotated back."""
    rotation, centroids = (torch.from_numpy(state[name]) for name in ("rotation", "centroids"))
    table = torch.einsum("mkw,mwd->mkd", centroids, rotation.reshape(8, 10, 80)).reshape(-1, 80)
    bags = codes.reshape(-1, 8).long() + torch.arange(8) * 256
    return F.embedding_bag(bags, table, mode="sum").reshape(len(codes), rows, rows, 80).permute(0, 3, 1, 2)


def distances(state: State, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the squared distance of each vector's parts to all centroids, (N, 8, 256), in double precision."""
    rotated = vectors.astype(np.float64) @ state["rotation"].T.astype(np.float64)
    return np.asarray(((rotated.reshape(-1, 8, 1, 10) - state["centroids"]) ** 2).sum(axis=3))


def assert_as_in_torch(codec: OPQ, state: State, latents: Latents) -> None:
    """Codes are equal but for ties, latents are equal bit for bit."""
    ours, theirs = codec.encode(latents), torch_codes(state, torch.from_numpy(latents)).numpy()
    different = np.nonzero((ours != theirs).reshape(-1, 8).any(axis=1))[0]
    assert len(different) <= 1e-4 * latents[:, 0].size
    if len(different):
        tied = distances(state, np.moveaxis(latents, 1, 3).reshape(-1, 80)[different])
        first, second = (
            np.take_along_axis(tied, codes.reshape(-1, 8)[different][:, :, None], axis=2) for codes in (ours, theirs)
        )
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-5)
    shape = latents.shape[1:]
    expected = torch_decoded(state, torch.from_numpy(ours), shape[1])
    assert np.array_equal(codec.decode(ours, shape), expected.numpy())
    assert torch.equal(codec.decoder(shape)(torch.from_numpy(ours)), expected)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_codes_and_latents_are_those_of_torch_for_random_latents(codec: OPQ, state: State, scale: float) -> None:
    latents = np.random.default_rng(3).normal(scale=scale, size=(12, 80, 14, 14)).astype(np.float32)
    assert_as_in_torch(codec, state, latents)


def test_codes_and_latents_are_those_of_torch_for_real_images(codec: OPQ, state: State, shared_data: Path) -> None:
    files = sorted((shared_data / "cub200" / "test").rglob("*.jpg"))[::24][:24]
    assert len(files) == 24
    network = make_backbone()
    with torch.no_grad():
        pixels = normalize([read_image(file, 224) for file in files], network.normalization)
        latents = network.bottom(torch.from_numpy(pixels)).numpy()
    assert_as_in_torch(codec, state, latents)


@pytest.mark.parametrize("batch", [1, 3, 20])
def test_codes_and_reconstructions_equal_those_of_faiss(
    codec: OPQ, state: State, vectors: npt.NDArray[np.float32], batch: int
) -> None:
    data = vectors[: batch * 100]
    quantizer = faiss.ProductQuantizer(80, 8, 8)
    faiss.copy_array_to_vector(state["centroids"].ravel(), quantizer.centroids)
    latents = np.moveaxis(data.reshape(batch, 10, 10, 80), 3, 1)
    ours = codec.encode(latents).reshape(-1, 8)
    theirs = quantizer.compute_codes(data @ state["rotation"].T)
    assert (ours == theirs).mean() > 0.9999  # a tie in float32 may go either way
    again = np.moveaxis(codec.decode(theirs.reshape(batch, -1), (80, 10, 10)), 1, 3)
    np.testing.assert_allclose(again.reshape(-1, 80), quantizer.decode(theirs) @ state["rotation"], atol=1e-5)


def test_codes_are_nearest_centroids(codec: OPQ, state: State, vectors: npt.NDArray[np.float32]) -> None:
    codes = codec.encode(vectors[:50, :, None, None])
    to_all = distances(state, vectors[:50])
    chosen = np.take_along_axis(to_all, codes.astype(int)[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, to_all.min(axis=2), rtol=1e-4, atol=1e-4)


def mixed(count: int) -> Latents:
    """Return vectors (count, 16) with correlated elements."""
    rng = np.random.default_rng(1)
    return (rng.normal(size=(count, 16)) @ rng.normal(size=(16, 16))).astype(np.float32)


def test_a_fit_is_as_good_as_that_of_faiss() -> None:
    data = mixed(800)
    index = faiss.index_factory(16, "OPQ8,PQ8x8np")  # "np" skips the ordering of the centroids, the slowest part
    index.train(data)
    decoded = index.sa_decode(index.sa_encode(data))
    reference = float((((data - decoded) ** 2).sum(1) / (data**2).sum(1)).mean())
    assert relative_error(OPQ.fit(data, seed=3), data[:, :, None, None]) < 1.05 * reference


def test_a_fit_depends_on_data_and_seed_only() -> None:
    first, again, other = (OPQ.fit(mixed(300), seed=seed).state()["centroids"] for seed in (3, 3, 4))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(("codebooks", "bits"), [(1, 8), (16, 8), (4, 5), (2, 1)])
def test_codebooks_and_bits_are_options(codebooks: int, bits: int) -> None:
    data = mixed(300)
    codec = OPQ.fit(data, seed=0, codebooks=codebooks, bits=bits)
    assert codec.options == {"codebooks": codebooks, "bits": bits}
    assert codec.code_bytes((16, 7, 7)) == 49 * codebooks and codec.code_bytes((10, 16)) == 10 * codebooks
    assert codec.encode_flops((16, 7, 7)) == 49 * 2 * (16 * 16 + 16 * 2**bits)
    codes = codec.encode(data[:, :, None, None])
    assert codes.shape == (300, codebooks) and codes.max() < 2**bits
    state = codec.state()
    rotated = data @ state["rotation"].T
    to_all = ((rotated.reshape(300, codebooks, 1, -1) - state["centroids"]) ** 2).sum(axis=3)
    chosen = np.take_along_axis(to_all, codes[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, to_all.min(axis=2), rtol=1e-3, atol=1e-3)
    parts = [state["centroids"][book, codes[:, book]] for book in range(codebooks)]
    expected = np.concatenate(parts, axis=1) @ state["rotation"]
    np.testing.assert_allclose(codec.decode(codes, (16, 1, 1))[:, :, 0, 0], expected, rtol=1e-3, atol=1e-3)


def test_more_codebooks_and_bits_lose_less() -> None:
    data = mixed(600)
    sizes = [(4, 8), (8, 4), (8, 8), (16, 8)]
    errors = {
        size: relative_error(OPQ.fit(data, 0, codebooks=size[0], bits=size[1]), data[:, :, None, None])
        for size in sizes
    }
    assert errors[16, 8] < errors[8, 8] < min(errors[4, 8], errors[8, 4])


def test_remind_with_resnet18_takes_32_codebooks_of_the_latents_before_the_last_block() -> None:
    shape = make_backbone("resnet18", 8, weights=RANDOM).latent_shape(224)
    assert shape == (512, 7, 7)
    OPQ.check(shape, codebooks=32)
    codec = OPQ(np.eye(512, dtype=np.float32), np.zeros((32, 256, 16), np.float32))
    assert codec.code_bytes(shape) == 7 * 7 * 32


def test_a_fit_refuses_unsuitable_data_and_options() -> None:
    data = np.zeros((1000, 12), np.float32)
    with pytest.raises(BadInput, match="multiple of 8 channels and the latents have 12"):
        OPQ.fit(data, seed=0)
    with pytest.raises(BadInput, match="multiple of 32"):
        OPQ.check((80, 14, 14), codebooks=32)
    with pytest.raises(BadInput, match="multiple of 8 channels and the latents have 12"):
        OPQ.check((80, 12))
    with pytest.raises(BadInput, match="too few"):
        OPQ.fit(mixed(100), seed=0)
    with pytest.raises(BadInput, match="40 vectors are too few to fit a rotation of 48 channels"):
        OPQ.fit(np.zeros((40, 48), np.float32), seed=0, bits=4)
    for codebooks, bits, name in ((8, 0, "bits"), (8, 9, "bits"), (0, 8, "codebooks")):
        with pytest.raises(BadInput, match=f"option '{name}' of codec opq"):
            OPQ.fit(mixed(300), 0, codebooks=codebooks, bits=bits)


def test_tokens_are_coded_as_the_positions_of_a_map(codec: OPQ, vectors: npt.NDArray[np.float32]) -> None:
    tokens = vectors[:24].reshape(2, 12, 80)
    codes = codec.encode(tokens)
    assert codes.shape == (2, codec.code_bytes((12, 80))) == (2, 96)
    assert np.array_equal(codes, codec.encode(np.moveaxis(tokens.reshape(2, 3, 4, 80), 3, 1)))
    decoded = codec.decode(codes, (12, 80))
    assert np.array_equal(np.moveaxis(decoded.reshape(2, 3, 4, 80), 3, 1), codec.decode(codes, (80, 3, 4)))
    errors = ((tokens - decoded) ** 2).sum(axis=2) / (tokens**2).sum(axis=2)
    assert relative_error(codec, tokens) == pytest.approx(float(errors.mean()))
