"""Conformance of all codecs, and the measures and fitted arrays of the package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from siesta.codecs import CODECS, OPQ, fitted_codec, relative_error
from siesta.contracts import Codec, Latents, LatentShape, Normalization

NORMALIZATION = Normalization(mean=(120.0, 110.0, 100.0), std=(60.0, 55.0, 50.0))
MAP: LatentShape = (16, 4, 3)
TOKENS: LatentShape = (5, 16)
IMAGE: LatentShape = (3, 8, 8)


def shapes_of(name: str) -> tuple[LatentShape, ...]:
    """Return shapes that a codec must accept: images for a codec of images, else feature maps and tokens."""
    return (IMAGE,) if CODECS[name].cut == 0 else (MAP, TOKENS)


CASES = [(name, shape) for name in CODECS for shape in shapes_of(name)]


def make_codec(name: str, seed: int = 0) -> Codec:
    fit: Callable[..., Codec] = CODECS[name].fit
    vectors = normal(300, 16) if CODECS[name].needs_fit else np.zeros((0, 0), np.float32)
    return fit(vectors, seed, NORMALIZATION)


def normal(*shape: int, seed: int = 1) -> Latents:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def latents_of(shape: LatentShape, count: int = 5) -> Latents:
    if shape != IMAGE:
        return normal(count, *shape)
    pixels = np.random.default_rng(1).integers(0, 256, (count, *shape))
    mean, std = (np.reshape(values, (3, 1, 1)) for values in (NORMALIZATION.mean, NORMALIZATION.std))
    return np.asarray((pixels - mean) / std, np.float32)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_codes_and_latents_have_the_right_shape_for_any_batch(name: str, shape: LatentShape) -> None:
    codec, latents = make_codec(name), latents_of(shape)
    assert isinstance(codec, Codec) and codec.name == name
    codes = codec.encode(latents)
    assert codes.shape == (5, codec.code_bytes(shape)) and codes.dtype == np.uint8
    decoded = codec.decode(codes, shape)
    assert decoded.shape == latents.shape and decoded.dtype == np.float32
    assert np.array_equal(codec.encode(latents[2:3])[0], codes[2])
    assert np.array_equal(codec.decode(codes[2:3], shape)[0], decoded[2])
    codes.flags.writeable = False  # as codes of a store or a mapped file may be
    assert np.array_equal(codec.decode(codes[::-1], shape), decoded[::-1])
    assert 0 <= relative_error(codec, latents) < 1
    assert codec.encode_flops(shape) >= 0


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_the_torch_decoder_computes_the_same_on_its_device(name: str, shape: LatentShape) -> None:
    codec = make_codec(name)
    codes = codec.encode(latents_of(shape))
    decoder = codec.decoder(shape)
    assert not list(decoder.parameters())
    decoded = decoder(torch.from_numpy(codes))
    expected = torch.from_numpy(codec.decode(codes, shape))
    torch.testing.assert_close(decoded, expected)
    assert decoded.stride() == expected.stride()
    elsewhere = decoder.to("meta")(torch.from_numpy(codes).to("meta"))
    assert elsewhere.device.type == "meta" and elsewhere.shape == decoded.shape, "every tensor has to move"


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_codec_is_restored_from_its_state(name: str, shape: LatentShape) -> None:
    codec, latents = make_codec(name), latents_of(shape)
    state = codec.state()
    assert all(isinstance(array, np.ndarray) for array in state.values())
    restored = CODECS[name].from_state({**state, "centre": np.zeros(3)})
    codes = restored.encode(latents)
    assert np.array_equal(codes, codec.encode(latents))
    assert np.array_equal(restored.decode(codes, shape), codec.decode(codes, shape))
    assert restored.options == codec.options


@pytest.mark.parametrize("name", CODECS)
def test_a_fit_depends_on_vectors_and_seed_only_and_accepts_its_own_options(name: str) -> None:
    codec = make_codec(name)
    for shape in shapes_of(name):
        check: Callable[..., None] = CODECS[name].check
        check(shape, **codec.options)
    first, again = codec.state(), make_codec(name).state()
    assert all(np.array_equal(first[key], again[key]) for key in first)


def test_relative_error_is_the_mean_over_vectors_that_are_not_zero() -> None:
    codec = make_codec("opq")
    latents = normal(2, 16, 3, 3, seed=2)
    latents[0, :, 0, 0] = 0
    decoded = codec.decode(codec.encode(latents), (16, 3, 3))
    a, b = (np.moveaxis(x, 1, 3).reshape(-1, 16) for x in (latents, decoded))
    counted = (a**2).sum(axis=1) > 0
    expected = (((a - b) ** 2).sum(axis=1)[counted] / (a**2).sum(axis=1)[counted]).mean()
    assert counted.sum() == 17 and relative_error(codec, latents) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("backbone", "cut"), [(f"efficientnet_lite{n}", cut) for n, cut in enumerate((7, 9, 9))])
def test_a_fitted_codec_states_its_provenance(backbone: str, cut: int) -> None:
    found = fitted_codec(backbone, cut)
    assert found is not None
    arrays, provenance = found
    assert {"command", "base", "unseen", "relative_error", "date", "commit", "machine"} <= set(provenance)
    assert 0 < provenance["relative_error"]["unseen"] < 0.3
    assert provenance["codec"] == "opq" and OPQ.from_state(arrays).options == {"codebooks": 8, "bits": 8}
    assert fitted_codec(backbone, 3) is None


def test_codecs_do_not_load_torch() -> None:
    code = """
import sys, numpy as np
from siesta.codecs import OPQ, fitted_codec
codec = OPQ.from_state(fitted_codec("efficientnet_lite0", 7)[0])
codec.decode(codec.encode(np.ones((1, 80, 2, 2), np.float32)), (80, 2, 2))
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
