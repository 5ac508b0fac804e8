"""What every codec promises, whatever it does inside."""

from __future__ import annotations

import pytest
import torch

from siesta.codecs import CODECS, OPQ, Raw, relative_error
from siesta.contracts import Codec, Scaling

SCALING = Scaling(mean=(120.0, 110.0, 100.0), std=(60.0, 55.0, 50.0))
MADE: dict[str, tuple[Codec, tuple[int, int, int]]] = {
    "opq": (OPQ.fit(torch.randn(2000, 16, generator=torch.Generator().manual_seed(0)), seed=0), (16, 4, 3)),
    "raw": (Raw.of(SCALING), (3, 8, 8)),
}


def latents_of(name: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if name == "raw":
        pixels = torch.randint(0, 256, (5, *MADE[name][1]), generator=generator)
        mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in (SCALING.mean, SCALING.std))
        return (pixels - mean) / std
    return torch.randn(5, *MADE[name][1], generator=generator)


def test_every_codec_is_tested() -> None:
    assert set(MADE) == set(CODECS)


@pytest.mark.parametrize("name", CODECS)
def test_conformance(name: str) -> None:
    codec, shape = MADE[name]
    latents = latents_of(name)
    assert isinstance(codec, Codec) and codec.name == name
    codes = codec.encode(latents)
    assert codes.shape == (5, codec.code_bytes(shape)) and codes.dtype == torch.uint8
    decoded = codec.decode(codes, shape)
    assert decoded.shape == latents.shape
    assert torch.equal(codec.encode(latents[2:3])[0], codes[2])
    assert torch.equal(codec.decode(codes[2:3], shape)[0], decoded[2])
    again = CODECS[name].from_state(codec.state()).to(torch.device("cpu"))
    assert torch.equal(again.encode(latents), codes)
    assert 0 <= relative_error(codec, latents) < 1


def test_raw_loses_nothing() -> None:
    codec, shape = MADE["raw"]
    latents = latents_of("raw")
    assert torch.allclose(codec.decode(codec.encode(latents), shape), latents, atol=1e-6)
    assert relative_error(codec, latents) < 1e-10
    assert codec.code_bytes((3, 224, 224)) == 150_528
