"""FLOPs against counts by hand and published ones; the counter against sums written out."""

from __future__ import annotations

import json
from dataclasses import astuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from siesta.backbones import BACKBONES, RANDOM, make_backbone
from siesta.codecs.opq import OPQ
from siesta.codecs.raw import Raw
from siesta.contracts import Backbone, Scaling, SleepDefaults
from siesta.resources import (
    PHASES,
    Counter,
    Flops,
    codebooks,
    codes,
    copies,
    images,
    means,
    network_bytes,
    parameters,
)

SCALING = Scaling(mean=(127.0,) * 3, std=(128.0,) * 3)
COSTS = Flops(bottom=2.0, encode=3.0, decode=5.0, top=7.0, head=11.0, step=13.0, whole=17.0)
WIDTH = 16


def small(name: str) -> Backbone:
    """8 px pictures, latents of 4 x 4 x 16; every layer with a bias, which FLOPs leave out."""
    bottom = nn.Sequential(nn.Conv2d(3, WIDTH, 3, stride=2, padding=1), nn.BatchNorm2d(WIDTH))
    top = nn.Sequential(
        nn.Conv2d(WIDTH, 20, 3, padding=1, groups=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 6)
    )
    defaults = SleepDefaults(rate=0.1, layer_decay=1, scale=16, dropout=0)
    return Backbone(name, 2, bottom.requires_grad_(False).eval(), top.eval(), 6, SCALING, defaults)


def random_opq(width: int) -> OPQ:
    return OPQ(torch.eye(width), torch.zeros(8, 256, width // 8))


def published(name: str) -> Flops:
    backbone = make_backbone(name, weights=RANDOM)
    return Flops.measure(backbone, random_opq(backbone.latent_shape(224)[0]), 224, 1000)


def test_a_small_network_against_a_count_by_hand() -> None:
    classes = 9
    flops = Flops.measure(small("by_hand"), random_opq(WIDTH), 8, classes)
    stem = 2 * 3 * 9 * WIDTH * 16
    grouped = 2 * (WIDTH // 4) * 9 * 20 * 16
    linear, head = 2 * 20 * 6, 2 * 6 * classes
    assert flops.bottom == stem
    assert flops.encode == 2 * 16 * WIDTH * WIDTH + 2 * 16 * WIDTH * 256  # the rotation, and all words of all books
    assert flops.decode == 0
    assert flops.top == grouped + linear
    assert flops.head == head
    # backward is twice the forward, but the lowest layer passes no gradient on
    assert flops.step == 3 * (grouped + linear + head) - grouped
    assert flops.whole == 3 * (stem + grouped + linear + head) - stem


def test_measuring_changes_nothing() -> None:
    backbone = small("changes_nothing")
    backbone.bottom.train()
    before = {
        key: value.clone() for part in (backbone.bottom, backbone.top) for key, value in part.state_dict().items()
    }
    Flops.measure(backbone, random_opq(WIDTH), 8, 3)
    after = {key: value for part in (backbone.bottom, backbone.top) for key, value in part.state_dict().items()}
    assert all(torch.equal(after[key], before[key]) for key in before)
    assert backbone.bottom.training
    assert not backbone.top.training
    assert all(not some.requires_grad for some in backbone.bottom.parameters())
    assert all(some.grad is None for some in backbone.top.parameters())


def test_a_network_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Flops.measure(small("once"), random_opq(WIDTH), 8, 3)
    monkeypatch.setattr("siesta.resources._measure", None)
    assert Flops.measure(small("once"), random_opq(WIDTH), 8, 3) is first
    with pytest.raises(TypeError):
        Flops.measure(small("once"), random_opq(WIDTH), 8, 4)


def test_with_raw_pictures_a_step_trains_the_whole_network() -> None:
    backbone = make_backbone("mobilenet_v2", 0, weights=RANDOM)
    flops = Flops.measure(backbone, Raw.of(backbone.scaling), 32, 10)
    assert flops.bottom == flops.encode == flops.decode == 0
    assert flops.step == flops.whole


# Multiply-adds at 224 px in millions with a 1000-way output, as published: MobileNetV3's and MobileNetV2's papers,
# torchvision for ResNet18. Google states 407 for EfficientNet-Lite0; its convolutions make 385, which the count by
# hand below confirms, so 407 must count more than convolutions and products.
PUBLISHED = {
    "mobilenet_v2": (300, 0.005),
    "mobilenet_v3_large": (219, 0.012),
    "mobilenet_v3_large_plain": (219, 0.012),
    "resnet18": (1814, 0.001),
    "resnet18_gn": (1814, 0.001),
    "efficientnet_lite0": (407, 0.055),
}


@pytest.mark.parametrize("name", BACKBONES)
def test_published_multiply_adds(name: str) -> None:
    millions, tolerance = PUBLISHED[name]
    flops = published(name)
    assert (flops.bottom + flops.top + flops.head) / 2e6 == pytest.approx(millions, rel=tolerance)
    assert 2.5 * flops.top < flops.step < 3 * (flops.top + flops.head)
    assert 2.9 * (flops.bottom + flops.top + flops.head) < flops.whole < 3 * (flops.bottom + flops.top + flops.head)


def test_efficientnet_lite0_against_its_block_table() -> None:
    """(expansion, out, kernel, stride, repeats) of the published table, at 224 px."""
    table = [(1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 2, 3), (6, 112, 5, 1, 3)]
    table += [(6, 192, 5, 2, 4), (6, 320, 3, 1, 1)]
    side, channels = 112, 32
    total = 3 * 9 * channels * side**2
    for expansion, out, kernel, first_stride, repeats in table:
        for stride in [first_stride] + [1] * (repeats - 1):
            wide = channels * expansion
            total += channels * wide * side**2 if expansion > 1 else 0
            side //= stride
            total += (kernel**2 * wide + wide * out) * side**2
            channels = out
    total += channels * 1280 * side**2 + 1280 * 1000
    flops = published("efficientnet_lite0")
    assert flops.bottom + flops.top + flops.head == 2 * total


counts = st.integers(0, 10**6)


@given(st.lists(st.tuples(st.sampled_from(PHASES), counts, counts, counts, counts), max_size=8))
def test_counter_against_sums_written_out(spent: list[tuple[str, int, int, int, int]]) -> None:
    counter = Counter(COSTS)
    for phase, looked, embedded, trained, scored in spent:
        counter.spend(phase, looked=looked, embedded=embedded, trained=trained, scored=scored)
    for phase in PHASES:
        of_phase = [row[1:] for row in spent if row[0] == phase]
        assert counter.flops[phase] == sum(17 * a + 12 * b + 18 * c + 11 * d for a, b, c, d in of_phase)
    assert counter.updates == sum(row[3] for row in spent)


def test_counter_survives_json() -> None:
    counter = Counter(COSTS)
    counter.spend("sleep", trained=3)
    counter.add_seconds("wake", 1.5)
    again = Counter.from_state(COSTS, json.loads(json.dumps(counter.state())))
    assert again.state() == counter.state()
    again.spend("sleep", trained=1)
    assert (again.updates, again.flops["sleep"]) == (4, 4 * 18)


def test_an_unknown_phase_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Counter(COSTS).spend("nap", looked=1)


def test_seconds_are_counted_even_when_something_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr("siesta.resources.time.perf_counter", lambda: next(ticks))
    counter = Counter(COSTS)
    with counter.timed("sleep"):
        pass
    with pytest.raises(ZeroDivisionError), counter.timed("sleep"):
        raise ZeroDivisionError
    assert counter.seconds == {"wake": 0, "sleep": 3.5, "inference": 0}


def test_resources_are_a_snapshot() -> None:
    counter = Counter(COSTS)
    before = counter.resources(parameters=7, bytes={"codes": 8})
    counter.spend("wake", looked=1, trained=2)
    assert astuple(before) == (0, 7, {"codes": 8}, dict.fromkeys(PHASES, 0), dict.fromkeys(PHASES, 0))


def test_bytes_in_parts() -> None:
    assert codes(5994, 1568) == 9_398_592
    assert images(5994, 224) == 902_264_832
    assert network_bytes(5_480_000) == 21_920_000
    assert copies(2, 5_480_000) == 43_840_000
    assert codebooks(random_opq(80)) == 4 * (80 * 80 + 8 * 256 * 10)
    assert means(200, 1280) == 200 * (1280 * 8 + 8)
    assert means(200, 1280, item_bytes=4) == 200 * (1280 * 4 + 8)


def test_parameters_are_those_of_all_parts() -> None:
    backbone = small("parameters")
    bottom = 3 * 9 * WIDTH + WIDTH + 2 * WIDTH
    top = WIDTH // 4 * 9 * 20 + 20 + 20 * 6 + 6
    assert parameters(backbone, 9) == bottom + top + 9 * 6
