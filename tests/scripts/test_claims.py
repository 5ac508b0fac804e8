"""The table of the paper's claims on written runs: figures recomputed from the predictions, and verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts import claims, experiment_tables, measurement_tables
from tests.experiment.written_runs import write_run

EACH = 60


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of results that the table is made from."""
    for module in (claims, experiment_tables, measurement_tables):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    for cached in (experiment_tables.runs_of, experiment_tables.comparison_of):
        cached.cache_clear()
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def row_of(claim: str) -> list[str]:
    """What was measured on a claim, and whether it holds."""
    lines = [line for line in claims.claims().split("\n") if line.startswith(f"| {claim}")]
    (line,) = lines
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def correct(out: Path, run: str, k: int) -> Any:
    file = sorted((out / "runs" / run / "predictions").glob("*-after.npz"))[-1]
    with np.load(file) as arrays:
        return (arrays["top"][:, :k] == arrays["truth"][:, None]).any(axis=1)


def test_without_rows_nothing_is_claimed(results: Path) -> None:
    assert not list(results.iterdir())
    rows = [line for line in claims.claims().split("\n") if line.startswith("| ")][2:]
    assert len(rows) == 13
    assert all(line.count("not measured yet") == 2 for line in rows)


def test_differences_are_those_of_the_predictions_seed_by_seed(results: Path) -> None:
    out = results / "cub200" / "comparison"
    for seed in (0, 1):
        write_run(out, seed=seed, each=EACH)
    write_run(out, "siesta_paper", each=EACH)
    write_run(out, "remind", right=0.2, each=EACH)
    write_run(out, "offline", right=0.95, each=EACH)
    write_run(out, order="iid", each=EACH)
    measured, holds = row_of("beats REMIND")
    ours = [correct(out, f"siesta-class_incremental-{seed}", 1) for seed in (0, 1)]
    theirs = correct(out, "remind-class_incremental-0", 1)
    points = ", ".join(f"{100 * (one.mean() - theirs.mean()):+.1f}" for one in ours)
    assert measured.startswith("CUB-200, 224 px, one order of classes: siesta - remind: ")
    assert f"top-1 {points}; top-5" in measured and "(2 seeds; remind one seed)" in measured
    assert "; siesta_paper - remind: top-1 +" in measured and "(one seed; remind one seed)" in measured
    assert holds.startswith("top-1 yes")
    measured, holds = row_of("equals the offline learner")
    assert "siesta - offline: top-1 -" in measured and holds.startswith("top-1 no (3 of 3 differ)")
    assert "siesta - iid: " in row_of("blind to order")[0]
    assert row_of("the same, where offline trains the whole network") == ["not measured yet", "not measured yet"]


def test_a_claim_is_taken_from_the_best_protocol_that_has_both_methods(results: Path) -> None:
    for folder in ("cub200", "cub200_small"):
        write_run(results / "cub200" / folder)
        write_run(results / "cub200" / folder, "remind", right=0.2)
    write_run(results / "cub200" / "cub200_small", "er", right=0.2)
    write_run(results / "cub200" / "comparison")
    assert row_of("beats REMIND")[0].startswith("CUB-200, 224 px")
    assert row_of("beats ER")[0].startswith("CUB-200, 112 px")
    assert row_of("little memory")[0].startswith("CUB-200, 112 px")


def test_sleeps_are_counted_that_gain_nothing(results: Path) -> None:
    out = results / "cub200" / "comparison"
    write_run(out, each=EACH)
    measured, holds = row_of("every sleep helps")
    gains = []
    for step in range(3):
        before, after = (
            np.load(out / "runs" / "siesta-class_incremental-0" / "predictions" / f"{step:02d}-{phase}.npz")
            for phase in ("before", "after")
        )
        right = [100 * (arrays["top"][:, 0] == arrays["truth"]).mean() for arrays in (before, after)]
        gains.append(right[1] - right[0])
    assert f"siesta, top-1: {', '.join(f'{gain:+.1f}' for gain in gains)}; siesta, top-5: " in measured
    assert holds == "yes" if "-" not in measured.partition("sleep: ")[2] else holds.startswith("no (")


def test_a_long_tail_compares_balanced_with_uniform_rehearsal(results: Path) -> None:
    out = results / "cub200" / "long_tail_cub200"
    write_run(out, order="long_tailed", right=0.8, each=EACH)
    write_run(out, "siesta_uniform", order="long_tailed", right=0.3, each=EACH)
    measured, holds = row_of("balanced rehearsal wins on a long tail")
    first, second = (correct(out, f"{name}-long_tailed-0", 1) for name in ("siesta", "siesta_uniform"))
    points = f"{100 * (first.mean() - second.mean()):+.1f}"
    assert measured == f"CUB-200, 112 px, factor 10: siesta - siesta_uniform, top-1 {points}"
    assert holds == "top-1 yes"


@pytest.mark.parametrize(
    ("values", "holds"),
    [((3.5, 3.1), "yes"), ((2.0, 3.1), "faster, by less (1 of 2 reach it)"), ((0.9, 3.1), "no")],
)
def test_speed_is_that_of_the_benchmark(results: Path, values: tuple[float, float], holds: str) -> None:
    pairs = (("siesta", "remind", "3.4 in the paper"), ("siesta_er", "er", "3 in the paper"))
    rows = [
        {"bench": "training_speedup", "value": value, "limit": limit}
        | {"config": {"method": method, "over": over, "image_size": 224}}
        for value, (method, over, limit) in zip(values, pairs, strict=True)
    ]
    (results / "bench.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    measured, found = row_of("faster than REMIND and ER")
    assert f"siesta {values[0]:.1f}x remind; siesta_er 3.1x er" in measured and found == holds


def test_a_config_without_runs_names_its_command(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_tables, "ROOT", Path(__file__).parents[2])
    missing = experiment_tables.protocol("cub200/no_such_runs", "comparison")
    assert missing == "Not measured yet: `siesta run configs/comparison.toml --set data.path=CUB_200_2011`."
    monkeypatch.setattr(experiment_tables, "ROOT", results.parent)
    out = results / "cub200" / "comparison"
    write_run(out)
    write_run(out, "offline")
    tables = experiment_tables.protocol("cub200/comparison", "comparison")
    assert "| siesta | 1 |" in tables and "| siesta | offline | 0 | top-1 |" in tables
    assert "| siesta | 1 |" in experiment_tables.defaults()
    write_run(out, "remind")  # the last method without which the table of version 0.1 is shown first
    experiment_tables.comparison_of.cache_clear()
    experiment_tables.runs_of.cache_clear()
    assert experiment_tables.summary_figure().startswith(b"<?xml")
    assert "All runs have one order of classes." in experiment_tables.headline()


def test_a_falling_learning_rate_is_a_setting_of_its_own_in_a_search(results: Path) -> None:
    out = results / "cub200" / "comparison_search"
    for name, rate, final in (("remind_fixed", 0.001, 0.001), ("remind_a", 0.01, 0.0001), ("remind_b", 0.03, 0.0003)):
        settings = {"rate": rate, "final_rate": final, "rehearsals": 6}
        write_run(out, name, kind="remind", settings=settings, right=rate)
    table = experiment_tables.search("cub200/comparison_search").split("\n")
    (fixed,) = [line for line in table if line.startswith("| remind | lr, 6 rehearsals |")]
    (falling,) = [line for line in table if line.startswith("| remind | lr, falling, 6 rehearsals |")]
    assert "0.001: " in fixed and "0.01: " in falling and "0.03: " in falling and "0.01: " not in fixed


def test_seeds_with_orders_of_classes_of_their_own_are_told_from_others(results: Path) -> None:
    for seed in (0, 1):
        run = write_run(results / "cub200" / "comparison", seed=seed)
    (groups,) = experiment_tables.comparison_of("cub200/comparison").orders.values()
    assert not experiment_tables.has_own_class_orders(groups)
    for file in (run / "predictions").glob("00-*.npz"):
        with np.load(file) as stored:
            arrays = {**stored, "new_classes": np.array([4, 5], dtype=np.int32)}
        np.savez(file, **arrays)
    for cached in (experiment_tables.runs_of, experiment_tables.comparison_of):
        cached.cache_clear()
    (groups,) = experiment_tables.comparison_of("cub200/comparison").orders.values()
    assert experiment_tables.has_own_class_orders(groups)
