"""Tests and table rows of docs/results.md, computed again from results/ by code that shares nothing with siesta.

Archives are decoded by their documented layout, and tests of significance by their formulas in NumPy.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "cub200" / "cub200"

Correct = npt.NDArray[np.bool_]


def steps_of(run: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]:
    """Test samples (n,), truth (n,) and best classes (k, n) after each step."""
    with np.load(RUNS / run / "predictions.npz", allow_pickle=False) as stored:
        steps = []
        for name in sorted(name for name in stored.files if name.endswith("-after")):
            bits = np.unpackbits(stored[f"{name[:2]}-seen"])[: len(stored["samples"])] == 1
            steps.append((stored["samples"][bits], stored["truth"][bits], stored[name]))
    return steps


def right(run: str, k: int) -> Correct:
    """Whether each test sample was right at the end, (n,)."""
    _, truth, top = steps_of(run)[-1]
    return np.asarray((top[:k] == truth).any(axis=0))


def rows_below(heading: str) -> list[list[str]]:
    """Cells of the first table after a text in the section on the paper's protocol, without markup."""
    text = (ROOT / "docs" / "results.md").read_text("utf-8")
    section = text[text.index("<!-- full -->") : text.index("<!-- /full -->")]
    lines = section[section.index(heading) :].split("\n")
    first = next(number for number, line in enumerate(lines) if line.startswith("| ---")) + 1
    table = lines[first : next(n for n in range(first, len(lines)) if not lines[n].startswith("|"))]
    return [[cell.strip(" *").replace("\\", "") for cell in line.strip("|").split("|")] for line in table]


def mcnemar(first: Correct, second: Correct) -> float:
    """Chi-square with one degree of freedom and continuity correction: P(X > x) = erfc(sqrt(x / 2))."""
    b, c = int(np.sum(first & ~second)), int(np.sum(~first & second))
    assert b + c >= 25
    return math.erfc(math.sqrt((abs(b - c) - 1) ** 2 / (b + c) / 2))


def as_text(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


@pytest.mark.parametrize("k", [1, 5])
def test_mcnemar_against_offline_and_iid_and_holm_s_correction(k: int) -> None:
    names = [(seed, against) for against in ("offline", "iid") for seed in (0, 1, 2)]
    other = {"offline": "offline-class_incremental-0", "iid": "siesta-iid-0"}
    runs = [(right(f"siesta-class_incremental-{seed}", k), right(other[name], k)) for seed, name in names]
    ps = [mcnemar(*pair) for pair in runs]
    corrected = [0.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(np.argsort(ps).tolist()):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = largest
    found = [row for row in rows_below("Is SIESTA equal") if row[3] == f"top-{k}"]
    for row, (seed, name), (first, second), p, holm in zip(found, names, runs, ps, corrected, strict=True):
        assert row[:3] == ["siesta", name, "0" if seed == 0 else f"{seed}, 0"]
        assert row[4] == f"{100 * (first.mean() - second.mean()):+.2f}"
        assert row[6:8] == [as_text(p), as_text(holm)]


@pytest.mark.parametrize("k", [1, 5])
def test_the_interval_of_a_difference_and_its_verdict(k: int) -> None:
    first, second = right("siesta-class_incremental-1", k), right("siesta-iid-0", k)
    n = len(first) + 2
    p, q = (np.sum(first & ~second) + 1) / n, (np.sum(~first & second) + 1) / n
    low, high = (100 * (p - q + sign * 1.959964 * math.sqrt((p + q - (p - q) ** 2) / n)) for sign in (-1, 1))
    (row,) = [row for row in rows_below("Is SIESTA equal") if row[1:4] == ["iid", "1, 0", f"top-{k}"]]
    assert row[5] == f"{low:+.2f} to {high:+.2f}"
    equal, different = low > -1 and high < 1, low > 0 or high < 0
    assert row[8] == ("equivalent within one point" if equal else "different" if different else "undecided")


@pytest.mark.parametrize("k", [1, 5])
def test_cochran_s_q_over_the_paper_s_triple(k: int) -> None:
    names = ("siesta-class_incremental-0", "siesta-iid-0", "offline-class_incremental-0")
    table = np.stack([right(name, k) for name in names], axis=1).astype(float)
    columns, rows = table.sum(axis=0), table.sum(axis=1)
    q = 2 * (3 * np.sum(columns**2) - table.sum() ** 2) / (3 * table.sum() - np.sum(rows**2))
    (row,) = [row for row in rows_below("are the three equally good") if row[2:4] == ["0", f"top-{k}"]]
    assert row[4:] == [f"{q:.1f}", as_text(math.exp(-q / 2))]  # chi-square with two degrees of freedom


@pytest.mark.parametrize(("method", "seeds"), [("siesta", (0, 1, 2)), ("remind", (0,))])
def test_rows_of_the_table(method: str, seeds: tuple[int, ...]) -> None:
    (row,) = [row for row in rows_below("`class_incremental`") if row[0] == method]
    cells = []
    for k in (1, 5):
        curves = np.array(
            [
                [
                    100 * (top[:k] == truth).any(axis=0).mean()
                    for _, truth, top in steps_of(f"{method}-class_incremental-{s}")
                ]
                for s in seeds
            ]
        )
        values = (curves.mean(axis=1), curves[:, -1])
        cells.append(" / ".join(f"{v.mean():.1f}" + (f"±{v.std(ddof=1):.1f}" if len(v) > 1 else "") for v in values))
    assert row[1:4] == [str(len(seeds)), *cells]
    lines = (RUNS / f"{method}-class_incremental-0" / "rows.jsonl").read_text("utf-8").splitlines()
    last = json.loads(lines[-1])
    assert row[6:] == [f"{last['updates']:,}", f"{sum(last['bytes'].values()) / 1e6:.1f}", flops_of(last)]


def flops_of(row: dict[str, Any]) -> str:
    return f"{(row['flops']['wake'] + row['flops']['sleep']) / 1e12:.1f}"


def test_all_runs_of_the_table_have_the_same_test_samples() -> None:
    names = sorted(path.name for path in RUNS.iterdir() if re.search(r"-\d+$", path.name))
    reference = steps_of(names[0])[-1][0]
    assert len(reference) == 5794
    assert all(np.array_equal(steps_of(name)[-1][0], reference) for name in names)
