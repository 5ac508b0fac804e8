"""The literal table is whole, and agrees with what the paper says about it in words."""

from __future__ import annotations

from collections import Counter

import pytest

from siesta.experiment.paper.tables import PUBLISHED_ROWS, SLEEP_GAINS, TABLES, find_published_row, published_row


def test_rows_are_unique_and_belong_to_a_table() -> None:
    assert max(Counter((row.table, row.method) for row in PUBLISHED_ROWS).values()) == 1
    assert {row.table for row in PUBLISHED_ROWS} == set(TABLES)


def test_every_table_has_all_its_rows() -> None:
    found = Counter(row.table for row in PUBLISHED_ROWS if row.printed and row.table.startswith("tab:"))
    assert found == {
        "tab:no_aug": 5,
        "tab:aug": 15,
        "tab:places": 4,
        "tab:arch": 4,
        "tab:layer_analysis": 4,
        "tab:aug_expts_supp": 5,
        "tab:buffer-size": 3,
        "tab:batch_size": 5,
        "tab:ssl": 8,
        "tab:placesfull": 3,
        "tab:cub": 3,
    }
    assert sum(not row.printed for row in PUBLISHED_ROWS) == 4


@pytest.mark.parametrize("row", PUBLISHED_ROWS, ids=lambda row: f"{row.table} {row.method}")
def test_figures_are_plausible(row: object) -> None:
    for name in ("mu", "alpha"):
        value = getattr(row, name)
        assert value is None or 0 < value < 100
    for name in ("parameters", "memory", "updates", "gflops", "error", "hours", "samples", "mu_std", "alpha_std"):
        value = getattr(row, name)
        assert value is None or value > 0


def test_the_gaps_that_the_text_states() -> None:
    def gap(table: str, other: str, method: str = "SIESTA") -> float:
        return round((published_row(table, method).alpha or 0) - (published_row(table, other).alpha or 0), 2)

    assert [gap("tab:aug_expts_supp", other) for other in ("DER", "ER", "REMIND")] == [15.18, 15.78, 4.03]
    assert gap("tab:aug_expts_supp", "Offline") == -3.74
    assert [gap("tab:placesfull", other) for other in ("ER", "REMIND")] == [17.17, 7.55]
    assert [gap("tab:cub", other) for other in ("ER", "REMIND")] == [8.9, 12.76]
    assert [gap("tab:places", other) for other in ("REMIND", "SIESTA, uniform")] == [7.88, 4.73]
    assert [gap("tab:aug", other, "SIESTA (Aug)") for other in ("REMIND", "DyTox", "SIESTA (No Aug)")] == [
        9.86,
        3.09,
        3.41,
    ]
    assert [gap("tab:no_aug", other) for other in ("REMIND", "ER")] == [9.28, 19.67]
    online = [83.59 - (published_row("text:online", other).alpha or 0) for other in ("SLDA", "NCM")]
    assert online == pytest.approx([27.87, 28.98])
    ours, er = published_row("text:buffer", "SIESTA-ER").alpha, published_row("tab:no_aug", "ER").alpha
    assert (ours or 0) - (er or 0) == pytest.approx(7.94)
    assert gap("tab:arch", "ResNet18 (Aug)", "MobileNetV3-L (Aug)") == 3.84
    assert gap("tab:arch", "ResNet18 (No Aug)", "MobileNetV3-L (No Aug)") == 5.03
    assert gap("tab:buffer-size", "SIESTA, 479,665 samples", "SIESTA, 1,281,167 samples") == 3.02


def test_the_ratios_that_the_text_states() -> None:
    rates = {row.method: row.gflops for row in PUBLISHED_ROWS if row.gflops is not None}
    assert [round(rates["SIESTA"] / rates[other], 1) for other in ("REMIND", "DER", "ER")] == [1.9, 2.4, 14.9]
    hours = {row.method: row.hours for row in PUBLISHED_ROWS if row.hours is not None}
    assert [round(hours["REMIND"] / hours[f"SIESTA, batch {batch}"], 1) for batch in (64, 512)] == [3.4, 4.3]
    assert SLEEP_GAINS[100] == (4.25, 1.38)
    row = published_row("text:gain", "SIESTA, asleep every 100 classes")
    assert (row.gain, row.gain_std) == SLEEP_GAINS[100]


def test_unpublished_rows_are_not_found() -> None:
    assert find_published_row("tab:cub", "DyTox") is None
    with pytest.raises(KeyError, match="DyTox"):
        published_row("tab:cub", "DyTox")
