"""Fitting a codec reads all base images with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from siesta.backbones import DEFAULT_BACKBONE, PUBLISHED, make_backbone
from siesta.backbones.cut_network import initial_network
from siesta.codecs import OPQ, Raw, relative_error
from siesta.contracts import Latents, Normalization
from siesta.errors import BadInput
from siesta.images import ImageInput, Pixels, normalize
from siesta.learner.fitting import base_inputs, codec_for, fit_codec, measure_codec
from siesta.pipeline import NetworkEngines


def engines(
    name: str = DEFAULT_BACKBONE, cut: int | None = None, weights: str = PUBLISHED, linear: bool = False
) -> NetworkEngines:
    network = initial_network(name, cut, weights=weights, linear=linear, input_size=32)
    return NetworkEngines(network, engine="torch")  # a codec that is fitted on slightly other latents is another one


IMAGES = ImageInput(32, Normalization((0, 0, 0), (1, 1, 1)))
NOISE: list[Pixels] = list(np.random.default_rng(0).integers(0, 255, (70, 32, 32, 3), dtype=np.uint8))


def test_a_codec_is_fitted_on_all_vectors_if_they_fit() -> None:
    network = make_backbone()
    fitted = fit_codec(engines(), OPQ, iter(NOISE), seed=3)
    with torch.no_grad():
        latents = torch.cat(
            [
                network.bottom(torch.from_numpy(normalize(NOISE[i : i + 32], network.normalization)))
                for i in range(0, 70, 32)
            ]
        )
        vectors = latents.permute(0, 2, 3, 1).reshape(-1, 80)
        expected = OPQ.fit(vectors.numpy(), seed=3)
        for name, array in fitted.codec.state().items():
            np.testing.assert_allclose(array, expected.state()[name], rtol=1e-3, atol=1e-3)
        again = torch.from_numpy(fitted.codec.decode(fitted.codec.encode(latents.numpy()), (80, 2, 2)))
        assert fitted.centre is not None
        np.testing.assert_allclose(fitted.centre, network.top(again).mean(dim=0).numpy(), rtol=1e-4, atol=1e-4)
    assert fitted.error == pytest.approx(relative_error(fitted.codec, latents.numpy()), rel=1e-4)


def test_memory_is_bounded_and_the_whole_stream_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siesta.learner.fitting.MAX_VECTORS", 256)
    monkeypatch.setattr("siesta.learner.fitting._MAX_IMAGES", 10)
    seen = 0

    def stream() -> Iterator[Pixels]:
        nonlocal seen
        for _ in range(3):
            for pixels in NOISE:
                seen += 1
                yield pixels

    kept: list[int] = []
    original = OPQ.fit

    def counted(vectors: Latents, seed: int, normalization: Normalization) -> OPQ:
        kept.append(len(vectors))
        return original(vectors, seed, normalization)

    monkeypatch.setattr(OPQ, "fit", counted)
    fit_codec(engines(), OPQ, stream(), seed=0)
    assert seen == 210 and kept == [256]


def test_base_inputs_are_some_of_a_folder_or_all_of_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, pixels in enumerate(NOISE[:6]):
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    files = sorted(tmp_path.iterdir())
    assert len(list(base_inputs(tmp_path, IMAGES, 0))) == len(list(base_inputs(files, IMAGES, 0))) == 6
    monkeypatch.setattr("siesta.learner.fitting._MAX_IMAGES", 4)
    drawn = [[pixels.tobytes() for pixels in base_inputs(str(tmp_path), IMAGES, seed)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0]) == 4
    assert len(list(base_inputs(files, IMAGES, 0))) == 6
    with pytest.raises(BadInput, match="none of the images to fit on can be read"):
        list(base_inputs([tmp_path / "broken.png"], IMAGES, 0))
    with pytest.raises(BadInput, match="is not a folder"):
        base_inputs(tmp_path / "nowhere", IMAGES, 0)


@pytest.mark.parametrize("linear", [False, True])
def test_the_package_has_a_centre_with_and_without_the_last_activation(linear: bool) -> None:
    opq, raw = (codec_for(engines(linear=linear), codec, None, 0).centre for codec in ("opq", "raw"))
    assert opq is not None and raw is not None and np.array_equal(opq, raw)
    assert bool((opq < 0).any()) == linear


def test_the_raw_codec_needs_a_centre_only() -> None:
    network = engines("resnet18", 0, weights="random")
    assert codec_for(network, "raw", None, 0).centre is None
    fitted = codec_for(network, "raw", iter(NOISE), 0)
    codec = Raw.from_normalization(network.network.spec.normalization)
    assert fitted.centre is not None and np.array_equal(fitted.centre, measure_codec(network, codec, NOISE)[0])


def test_options_go_into_the_fit_and_no_packaged_codec_has_others() -> None:
    network = engines()
    fitted = codec_for(network, "opq", iter(NOISE), 0, options={"codebooks": 4, "bits": 6})
    assert fitted.codec.options == {"codebooks": 4, "bits": 6}
    assert codec_for(network, "opq", None, 0, options={"codebooks": 8}).codec.options["bits"] == 8
    with pytest.raises(BadInput, match=r"no fitted codec comes with .*\(codec opq, codebooks 4\)"):
        codec_for(network, "opq", None, 0, options={"codebooks": 4})
