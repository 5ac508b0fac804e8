"""FLOPs against counts by hand and published values; the counter against sums written out."""

from __future__ import annotations

import json
from dataclasses import astuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from siesta.backbones import BACKBONES, RANDOM, make_backbone
from siesta.codecs.opq import OPQ
from siesta.codecs.raw import Raw
from siesta.contracts import Backbone, Normalization, SleepDefaults
from siesta.methods.cost import (
    PHASES,
    CostCounter,
    Flops,
    code_bytes,
    codebook_bytes,
    copy_bytes,
    image_bytes,
    mean_bytes,
    network_bytes,
    parameter_count,
)

SCALING = Normalization(mean=(127.0,) * 3, std=(128.0,) * 3)
COSTS = Flops(bottom=2.0, encode=3.0, decode=5.0, top=7.0, head=11.0, step=13.0)
WIDTH = 16


def small(name: str, cut: int = 2) -> Backbone:
    """8 px images, latents of 4 x 4 x 16 at cut 2; every layer with a bias, which FLOPs leave out."""
    layers = [
        nn.Conv2d(3, WIDTH, 3, stride=2, padding=1),
        nn.BatchNorm2d(WIDTH),
        nn.Conv2d(WIDTH, 20, 3, padding=1, groups=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(20, 6),
    ]
    bottom = nn.Sequential(*layers[:cut]).requires_grad_(False).eval()
    top = nn.Sequential(*layers[cut:]).eval()
    defaults = SleepDefaults(lr=0.1, layer_decay=1, scale=16, dropout=0)
    return Backbone(name, cut, bottom, top, 6, SCALING, defaults)


def random_opq(width: int) -> OPQ:
    return OPQ(np.eye(width, dtype=np.float32), np.zeros((8, 256, width // 8), np.float32))


def published(name: str) -> Flops:
    backbone, size = make_backbone(name, weights=RANDOM), BACKBONES[name].image_size
    return Flops.measure(backbone, random_opq(backbone.latent_shape(size)[0]), size, 1000)


def test_flops_of_a_small_network_equal_a_count_by_hand() -> None:
    classes = 9
    flops = Flops.measure(small("by_hand"), random_opq(WIDTH), 8, classes)
    stem = 2 * 3 * 9 * WIDTH * 16
    grouped = 2 * (WIDTH // 4) * 9 * 20 * 16
    linear, head = 2 * 20 * 6, 2 * 6 * classes
    assert flops.bottom == stem
    assert flops.encode == 2 * 16 * WIDTH * WIDTH + 2 * 16 * WIDTH * 256  # the rotation and the distances to all words
    assert flops.decode == 0
    assert flops.top == grouped + linear
    assert flops.head == head
    # backward is twice the forward, but the lowest layer passes no gradient on
    assert flops.step == 3 * (grouped + linear + head) - grouped
    whole = Flops.measure(small("by_hand", cut=0), Raw.from_normalization(SCALING), 8, classes)
    assert whole.step == 3 * (stem + grouped + linear + head) - stem


def test_measuring_does_not_change_the_backbone() -> None:
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
    assert all(not parameter.requires_grad for parameter in backbone.bottom.parameters())
    assert all(parameter.grad is None for parameter in backbone.top.parameters())


def test_measurements_are_cached_by_architecture() -> None:
    first = Flops.measure(small("once"), random_opq(WIDTH), 8, 3)
    assert Flops.measure(small("once"), random_opq(WIDTH), 8, 3) is first
    assert Flops.measure(small("once"), random_opq(WIDTH), 8, 4).head > first.head


def test_with_the_raw_codec_a_step_trains_the_whole_network() -> None:
    backbone = make_backbone("mobilenet_v2", 0, weights=RANDOM)
    flops = Flops.measure(backbone, Raw.from_normalization(backbone.normalization), 32, 10)
    assert flops.bottom == flops.encode == flops.decode == 0
    forward = flops.top + flops.head
    assert 2.9 * forward < flops.step < 3 * forward


# Multiply-adds in millions with a 1000-way output, at the size of the published weights, as published: MobileNetV3's
# and MobileNetV2's papers, torchvision for ResNet18. Google states 407, 631 and 899 for EfficientNet-Lite; the
# convolutions of Lite0 make 385, which the count by hand below confirms, so these must count more than convolutions and
# products.
PUBLISHED = {
    "mobilenet_v2": (300, 0.005),
    "mobilenet_v3_large": (219, 0.012),
    "mobilenet_v3_large_plain": (219, 0.012),
    "resnet18": (1814, 0.001),
    "resnet18_gn": (1814, 0.001),
    "efficientnet_lite0": (407, 0.055),
    "efficientnet_lite1": (631, 0.055),
    "efficientnet_lite2": (899, 0.055),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_multiply_adds_are_the_published_ones(name: str) -> None:
    millions, tolerance = PUBLISHED[name]
    flops = published(name)
    assert (flops.bottom + flops.top + flops.head) / 2e6 == pytest.approx(millions, rel=tolerance)
    assert 2.5 * flops.top < flops.step < 3 * (flops.top + flops.head)


def test_efficientnet_lite0_equals_a_count_by_its_block_table() -> None:
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
def test_counted_flops_equal_sums_written_out(calls: list[tuple[str, int, int, int, int]]) -> None:
    counter = CostCounter(COSTS)
    for phase, images, codes, updates, scores in calls:
        counter.add(phase, images=images, codes=codes, updates=updates, scores=scores)
    for phase in PHASES:
        of_phase = [row[1:] for row in calls if row[0] == phase]
        assert counter.flops[phase] == sum(17 * a + 12 * b + 18 * c + 11 * d for a, b, c, d in of_phase)
    assert counter.updates == sum(row[3] for row in calls)


def test_a_counter_is_restored_from_json() -> None:
    counter = CostCounter(COSTS)
    counter.add("sleep", updates=3)
    counter.add_seconds("wake", 1.5)
    restored = CostCounter.from_state(COSTS, json.loads(json.dumps(counter.state())))
    assert restored.state() == counter.state()
    restored.add("sleep", updates=1)
    assert (restored.updates, restored.flops["sleep"]) == (4, 4 * 18)


def test_an_unknown_phase_raises() -> None:
    with pytest.raises(KeyError):
        CostCounter(COSTS).add("nap", images=1)


def test_seconds_are_counted_also_when_the_block_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr("siesta.methods.cost.time.perf_counter", lambda: next(ticks))
    counter = CostCounter(COSTS)
    with counter.timed("sleep"):
        pass
    with pytest.raises(ZeroDivisionError), counter.timed("sleep"):
        raise ZeroDivisionError
    assert counter.seconds == {"wake": 0, "sleep": 3.5, "inference": 0}


def test_resources_are_a_snapshot() -> None:
    counter = CostCounter(COSTS)
    before = counter.resources(parameters=7, bytes={"codes": 8})
    counter.add("wake", images=1, updates=2)
    assert astuple(before) == (0, 7, {"codes": 8}, dict.fromkeys(PHASES, 0), dict.fromkeys(PHASES, 0))


def test_bytes_of_each_part() -> None:
    assert code_bytes(5994, 1568) == 9_398_592
    assert image_bytes(5994, 224) == 902_264_832
    assert network_bytes(5_480_000) == 21_920_000
    assert copy_bytes(2, 5_480_000) == 43_840_000
    assert codebook_bytes(random_opq(80)) == 4 * (80 * 80 + 8 * 256 * 10)
    assert mean_bytes(200, 1280) == 200 * (1280 * 8 + 8)
    assert mean_bytes(200, 1280, item_bytes=4) == 200 * (1280 * 4 + 8)


def test_parameters_are_those_of_all_parts() -> None:
    backbone = small("parameters")
    bottom = 3 * 9 * WIDTH + WIDTH + 2 * WIDTH
    top = WIDTH // 4 * 9 * 20 + 20 + 20 * 6 + 6
    assert parameter_count(backbone, 9) == bottom + top + 9 * 6
