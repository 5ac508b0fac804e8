"""Every printed U, M and P against its formula, and the formulas against the network itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.backbones import RANDOM, make_backbone
from siesta.codecs.opq import OPQ
from siesta.experiment.paper.formulas import (
    CODE,
    CODEBOOKS,
    DERIVATIONS,
    MOBILENET,
    RESNET18,
    FigureCheck,
    batch_updates,
    check_figures,
    offline_updates,
    rehearsal_updates,
    sleep_updates,
)
from siesta.experiment.paper.tables import PUBLISHED_ROWS, TABLES
from siesta.methods.cost import codebook_bytes, parameter_count

CHECKS = list(check_figures())
MEASURES = Path(__file__).parents[3] / "docs" / "measures.md"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.row.table} {check.row.method} {check.figure}")
def test_printed_figures_agree_or_the_difference_is_named(check: FigureCheck) -> None:
    if check.derived is not None:
        off = abs(check.derived - check.printed) / check.printed
        unit = 10**6 if check.figure == "parameters" else getattr(TABLES[check.row.table], f"{check.figure}_unit")
        same_digits = round(check.derived / unit, 2) == round(check.printed / unit, 2)
        assert check.agrees == (off <= 0.002 or same_digits)
        assert off < (0.11 if check.row.table == "tab:places" else 0.01)
    assert check.agrees == (check.reason is None)


def test_every_printed_figure_is_checked() -> None:
    printed = sum(value is not None for row in PUBLISHED_ROWS for value in (row.updates, row.memory, row.parameters))
    assert len(CHECKS) == printed
    agreeing = sum(check.agrees for check in CHECKS)
    assert f"{agreeing} of {printed} printed figures agree" in MEASURES.read_text("utf-8")


def test_every_derivation_belongs_to_a_row() -> None:
    assert set(DERIVATIONS) <= {(row.table, row.method) for row in PUBLISHED_ROWS}


def test_the_settings_that_the_paper_states_need_no_fitting() -> None:
    """Its own methods' updates on every data set, and their networks."""
    stated = {"SIESTA", "REMIND", "ER", "DER", "SIESTA (Aug)", "SIESTA (No Aug)"}
    for check in CHECKS:
        if check.row.method in stated and check.figure != "memory":
            assert not check.fitted


def test_formulas_by_hand() -> None:
    assert sleep_updates(9_600, 4) == 38_400
    assert rehearsal_updates(5_994, 6) == 41_958
    assert batch_updates(2, [10, 20], buffer=5) == 80
    assert offline_updates(62_500, 40) == 2_500_000


def test_figures_of_the_network() -> None:
    backbone = make_backbone("mobilenet_v3_large", weights=RANDOM)
    assert parameter_count(backbone, 1000) == MOBILENET
    assert parameter_count(make_backbone("resnet18", weights=RANDOM), 1000) == RESNET18
    codec = OPQ(np.eye(80, dtype=np.float32), np.zeros((8, 256, 10), np.float32))
    assert codec.code_bytes(backbone.latent_shape(224)) == CODE
    assert codebook_bytes(codec) == CODEBOOKS + 4 * 80 * 80


@pytest.mark.parametrize(
    ("name", "cut", "derivation"),
    [
        ("mobilenet_v3_large", 3, ("tab:layer_analysis", "SIESTA, layer 3")),
        ("mobilenet_v3_large", 5, ("tab:layer_analysis", "SIESTA, layer 5")),
        ("mobilenet_v3_large", 8, ("tab:layer_analysis", "SIESTA, layer 8")),
        ("mobilenet_v3_large", 14, ("tab:layer_analysis", "SIESTA, layer 14")),
        ("mobilenet_v3_large", 8, ("tab:arch", "MobileNetV3-L (Aug)")),
        ("resnet18", None, ("tab:arch", "ResNet18 (Aug)")),
    ],
)
def test_weights_above_a_cut(name: str, cut: int | None, derivation: tuple[str, str]) -> None:
    backbone = make_backbone(name, cut, weights=RANDOM)
    above = sum(some.numel() for some in backbone.top.parameters()) + 1000 * backbone.features
    assert DERIVATIONS[derivation].parameters == above
