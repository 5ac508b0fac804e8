"""Reservoirs are fair whatever the chunks, and fitting looks at all pictures with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from siesta.backbones import make_backbone
from siesta.codecs import OPQ, Raw, relative_error
from siesta.errors import BadInput
from siesta.fitting import Reservoir, base_pictures, fit, fitted_for, measure
from siesta.images import Pixels, scaled

NOISE: list[Pixels] = list(np.random.default_rng(0).integers(0, 255, (70, 32, 32, 3), dtype=np.uint8))


def sampled(size: int, seed: int, chunks: list[int]) -> list[int]:
    reservoir, start = Reservoir(size, seed), 0
    for length in chunks:
        reservoir.add(np.arange(start, start + length))
        start += length
        assert len(reservoir.rows()) == min(size, start), "bounded, and full as soon as it can be"
    rows: list[int] = reservoir.rows().tolist()
    return rows


@given(st.integers(1, 40), st.integers(0, 10), st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_chunks_do_not_matter_and_nothing_comes_twice(size: int, seed: int, chunks: list[int]) -> None:
    rows, total = sampled(size, seed, chunks), sum(chunks)
    assert rows == sampled(size, seed, [1] * total)
    assert len(set(rows)) == len(rows) == min(size, total) and set(rows) <= set(range(total))
    if total <= size:
        assert rows == list(range(total)), "all of them, in order"


def test_a_row_by_row_reservoir_gives_the_same() -> None:
    """Algorithm R as textbooks have it, on the same random numbers."""
    for seed in range(20):
        random, kept = np.random.default_rng(seed), []
        for turn in range(200):
            place = int(random.random() * (turn + 1))
            if turn < 7:
                kept.append(turn)
            elif place < 7:
                kept[place] = turn
        assert sampled(7, seed, [50, 1, 149]) == kept


def test_every_row_has_the_same_chance() -> None:
    size, total, runs = 10, 50, 4000
    counts = np.bincount([row for seed in range(runs) for row in sampled(size, seed, [13, 37])], minlength=total)
    chance = size / total
    spread = np.sqrt(runs * chance * (1 - chance))
    assert np.abs(counts - runs * chance).max() < 4.5 * spread
    chi_square = ((counts - runs * chance) ** 2 / (runs * chance * (1 - chance))).sum()
    assert chi_square < 90, "49 degrees of freedom: beyond one in 3,000"


def test_rows_may_be_of_any_shape() -> None:
    reservoir = Reservoir(5, 0)
    for pixels in NOISE[:20]:
        reservoir.add(pixels[None])
    kept = reservoir.rows()
    assert kept.shape == (5, 32, 32, 3) and kept.dtype == np.uint8
    assert all(any(np.array_equal(row, pixels) for pixels in NOISE[:20]) for row in kept)


def test_a_codec_is_fitted_on_all_vectors_that_fit() -> None:
    network = make_backbone()
    fitted = fit(network, iter(NOISE), seed=3)
    with torch.no_grad():
        latents = torch.cat([network.bottom(scaled(NOISE[i : i + 32], network.scaling)) for i in range(0, 70, 32)])
        vectors = latents.permute(0, 2, 3, 1).reshape(-1, 80)
        expected = OPQ.fit(vectors, seed=3)
        for name, tensor in fitted.codec.state().items():
            torch.testing.assert_close(tensor, expected.state()[name], rtol=1e-3, atol=1e-3)
        again = fitted.codec.decode(fitted.codec.encode(latents), (80, 2, 2))
        assert fitted.centre is not None
        torch.testing.assert_close(fitted.centre, network.top(again).mean(dim=0), rtol=1e-4, atol=1e-4)
    assert fitted.error == pytest.approx(relative_error(fitted.codec, latents), rel=1e-4)


def test_memory_is_bounded_and_the_whole_stream_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siesta.fitting.VECTORS", 256)
    monkeypatch.setattr("siesta.fitting._PICTURES", 10)
    seen = 0

    def stream() -> Iterator[Pixels]:
        nonlocal seen
        for _ in range(3):
            for pixels in NOISE:
                seen += 1
                yield pixels

    kept: list[int] = []
    original = OPQ.fit

    def counted(vectors: torch.Tensor, seed: int) -> OPQ:
        kept.append(len(vectors))
        return original(vectors, seed)

    monkeypatch.setattr(OPQ, "fit", counted)
    fit(make_backbone(), stream(), seed=0)
    assert seen == 210 and kept == [256]


def test_of_a_folder_some_are_read_and_of_a_stream_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, pixels in enumerate(NOISE[:6]):
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    files = sorted(tmp_path.iterdir())
    assert len(list(base_pictures(tmp_path, 32, 0))) == len(list(base_pictures(files, 32, 0))) == 6
    monkeypatch.setattr("siesta.fitting._PICTURES", 4)
    drawn = [[pixels.tobytes() for pixels in base_pictures(str(tmp_path), 32, seed)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0]) == 4
    assert len(list(base_pictures(files, 32, 0))) == 6
    with pytest.raises(BadInput, match="none of the pictures to fit on can be read"):
        list(base_pictures([tmp_path / "broken.png"], 32, 0))
    with pytest.raises(BadInput, match="is not a folder"):
        base_pictures(tmp_path / "nowhere", 32, 0)


@pytest.mark.parametrize("linear", [False, True])
def test_the_package_has_a_centre_for_either_side_of_the_last_activation(linear: bool) -> None:
    network = make_backbone(linear=linear)
    opq, raw = (fitted_for(network, codec, None, 0, linear=linear).centre for codec in ("opq", "raw"))
    assert opq is not None and raw is not None and torch.equal(opq, raw)
    assert bool((opq < 0).any()) == linear


def test_raw_needs_no_more_than_a_centre() -> None:
    network = make_backbone("resnet18", 0, weights="random")
    assert fitted_for(network, "raw", None, 0).centre is None
    fitted = fitted_for(network, "raw", iter(NOISE), 0)
    codec = Raw.of(network.scaling)
    assert fitted.centre is not None and torch.equal(fitted.centre, measure(network, codec, NOISE)[0])
