"""Ours beside the published values, from rows written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from siesta.experiment import load_config
from siesta.experiment.beside import Line, beside

PAPER = Path(__file__).resolve().parents[2] / "configs" / "paper"


def row(step: int, phase: str, top1: float, top5: float, **more: Any) -> dict[str, Any]:
    costs = {"updates": 9600 * (step + 1), "parameters": 5_000_000, "flops": {"wake": 1e12, "sleep": 8e12}}
    seconds = {"wake": 3600.0, "sleep": 1800.0, "inference": 99.0}
    stored = {"codes": 9_000_000, "network": 20_000_000, "codebooks": 81_920, "means": 777, "images": 5}
    return {
        "step": step,
        "phase": phase,
        "top1": top1,
        "top5": top5,
        **costs,
        "seconds": seconds,
        "bytes": stored,
    } | more


def finished(out: Path, run: str, *rows: dict[str, Any], done: bool = True) -> None:
    folder = out / "runs" / run
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(some) + "\n" for some in rows), "utf-8")
    if done:
        (folder / "done").touch()


def lines(name: str, out: Path, missing: dict[str, str] | None = None) -> dict[tuple[str, str], Line]:
    every = beside(load_config(PAPER / f"{name}.toml"), out, missing or {})
    return {(line.method, line.order): line for line in every}


def test_values_in_the_units_and_by_the_parts_of_the_papers_table(tmp_path: Path) -> None:
    for seed, last in ((0, 80.0), (1, 84.0)):
        rows = (row(0, "before", 1, 70), row(0, "after", 1, 90), row(1, "before", 1, 70), row(1, "after", 1, last))
        finished(tmp_path, f"siesta-class_incremental-{seed}", *rows)
    finished(tmp_path, "siesta-class_incremental-2", row(0, "after", 0, 0), done=False)
    line = lines("cub200", tmp_path)["siesta", "class_incremental"]
    assert line.runs == 2 and line.note == "" and line.published is not None
    assert (line.published.table, line.published.alpha) == ("tab:cub", 83.52)
    ours = {name: some.mean for name, some in line.ours.items()}
    assert ours == pytest.approx(
        {
            "mu": (85 + 87) / 2,
            "alpha": 82.0,
            "parameters": 5.0,
            "memory": 29.08192,  # MB of codes, network and codebooks, as the paper counts here
            "updates": 19.2,  # thousands
            "gain": ((20 + 10) / 2 + (20 + 14) / 2) / 2,
            "gflops": 9e12 / 5400 / 1e9,
            "hours": 1.5,
        }
    )
    assert line.ours["alpha"].std == pytest.approx(8**0.5)


def test_top_1_on_places_and_no_mean_of_an_offline_learner(tmp_path: Path) -> None:
    finished(tmp_path, "siesta-class_incremental-0", row(0, "after", 25, 60))
    finished(tmp_path, "offline-class_incremental-0", row(0, "after", 22, 60))
    found = lines("places_lt", tmp_path)
    assert found["siesta", "class_incremental"].ours["alpha"].mean == 25
    offline = found["offline", "class_incremental"].ours
    assert "mu" not in offline and offline["alpha"].mean == 22


def test_weights_above_the_cut_where_the_paper_counts_those(tmp_path: Path) -> None:
    finished(tmp_path, "layer_8-class_incremental-0", row(0, "after", 1, 80, parameters=5_482_032))
    line = lines("layers", tmp_path)["layer_8", "class_incremental"]
    assert line.ours["parameters"].mean == pytest.approx(5.388832, abs=1e-3)


def test_what_did_not_run_says_why(tmp_path: Path) -> None:
    found = lines("aug", tmp_path, {"dytox": "not here yet", "unknown": "lost"})
    assert found["siesta", "class_incremental"].note == "not run"
    assert found["siesta", "class_incremental"].ours == {}
    dytox = found["dytox", "class_incremental"]
    assert (dytox.note, dytox.published and dytox.published.alpha) == ("not here yet", 83.91)
    assert found["unknown", "class_incremental"].published is None


def test_an_order_has_rows_of_its_own(tmp_path: Path) -> None:
    found = lines("sleep_frequency", tmp_path)
    gains = {order: line.published and line.published.gain for (_, order), line in found.items()}
    assert gains == {"every_50": 2.29, "every_100": 4.25, "every_150": 6.18}
