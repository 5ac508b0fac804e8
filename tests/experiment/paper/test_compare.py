"""Ours beside the published values, from answers drawn at random."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from siesta.errors import Damaged
from siesta.experiment import load_config
from siesta.experiment.paper.compare import PaperComparison, compare_with_paper
from tests.experiment.written_runs import write_run

BACKGROUND_COLOUR = Path(__file__).resolve().parents[3] / "configs" / "paper"


def lines(name: str, out: Path, missing: dict[str, str] | None = None) -> dict[tuple[str, str], PaperComparison]:
    every = compare_with_paper(load_config(BACKGROUND_COLOUR / f"{name}.toml"), out, missing or {})
    return {(line.method, line.order): line for line in every}


COSTS: dict[str, Any] = {
    "updates": 19_200,
    "parameters": 5_000_000,
    "flops": {"wake": 1e12, "sleep": 8e12, "inference": 1e12},
    "seconds": {"wake": 3600.0, "sleep": 1800.0, "inference": 99.0},
    "bytes": {
        "codes": 9_000_000,
        "network": 20_000_000,
        "copies": 0,
        "codebooks": 81_920,
        "means": 777,
        "images": 5,
    },
}


def accuracies(run: Path, phase: str, k: int) -> list[float]:
    """After each step, from the answers on disk."""
    found = []
    for file in sorted((run / "predictions").glob(f"*-{phase}.npz")):
        with np.load(file) as arrays:
            pairs = zip(arrays["truth"], arrays["top"], strict=True)
            found.append(100 * mean(truth in top[:k] for truth, top in pairs))
    return found


def test_values_in_the_units_and_by_the_parts_of_the_papers_table(tmp_path: Path) -> None:
    runs = [write_run(tmp_path, classes=30, each=2, seed=seed, **COSTS) for seed in (0, 1)]
    write_run(tmp_path, seed=2, done=False)
    line = lines("cub200", tmp_path)["siesta", "class_incremental"]
    assert line.runs == 2 and line.note == "" and line.published is not None
    assert (line.published.table, line.published.alpha) == ("tab:cub", 83.52)
    after, before = ([accuracies(run, phase, 5) for run in runs] for phase in ("after", "before"))
    ours = {name: some.mean for name, some in line.ours.items()}
    assert ours == pytest.approx(
        {
            "mu": mean(map(mean, after)),
            "alpha": mean(some[-1] for some in after),
            "parameters": 5.0,
            "memory": 29.08192,  # MB of codes, network and codebooks, as the paper counts here
            "updates": 19.2,  # thousands
            "gain": mean(map(mean, after)) - mean(map(mean, before)),
            "gflops": 9e12 / 5400 / 1e9,
            "hours": 1.5,
        }
    )
    assert line.ours["alpha"].std == pytest.approx(stdev(some[-1] for some in after))


def test_rows_that_disagree_with_predictions_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    rows = [json.loads(line) | {"top5": 42.0} for line in (run / "rows.jsonl").read_text().splitlines()]
    (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(Damaged, match="gives top5"):
        lines("cub200", tmp_path)


def test_top_1_on_places_and_no_mean_of_an_offline_learner(tmp_path: Path) -> None:
    siesta, learner = (write_run(tmp_path, name, classes=30, each=2) for name in ("siesta", "offline"))
    found = lines("places_lt", tmp_path)
    assert found["siesta", "class_incremental"].ours["alpha"].mean == pytest.approx(accuracies(siesta, "after", 1)[-1])
    offline = found["offline", "class_incremental"].ours
    assert "mu" not in offline
    assert offline["alpha"].mean == pytest.approx(accuracies(learner, "after", 1)[-1])


def test_weights_above_the_cut_where_the_paper_counts_those(tmp_path: Path) -> None:
    write_run(tmp_path, "layer_8", kind="siesta", parameters=5_482_032)
    line = lines("layers", tmp_path)["layer_8", "class_incremental"]
    assert line.ours["parameters"].mean == pytest.approx(5.388832, abs=1e-3)


def test_methods_that_did_not_run_have_a_reason(tmp_path: Path) -> None:
    found = lines("aug", tmp_path, {"dytox": "no weights", "unknown": "lost"})
    assert found["siesta", "class_incremental"].note == "not run"
    assert found["siesta", "class_incremental"].ours == {}
    dytox = found["dytox", "class_incremental"]
    assert (dytox.note, dytox.published and dytox.published.alpha) == ("no weights", 83.91)
    assert found["unknown", "class_incremental"].published is None


def test_each_order_is_compared_with_its_own_rows(tmp_path: Path) -> None:
    found = lines("sleep_frequency", tmp_path)
    gains = {order: line.published and line.published.gain for (_, order), line in found.items()}
    assert gains == {"every_50": 2.29, "every_100": 4.25, "every_150": 6.18}
