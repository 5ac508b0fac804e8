"""Tables of the rows that the comparison of pre-training methods writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import measurement_tables, ssl_tables
from scripts.measurement_tables import Row
from tests.pretrain.toys import TINY


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of results that the tables are made from."""
    for module in (measurement_tables, ssl_tables):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "results" / "ssl").mkdir(parents=True)
    return tmp_path / "results" / "ssl"


def _write(results: Path, **tables: list[dict[str, Any]]) -> None:
    for name, rows in tables.items():
        (results / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def test_a_method_that_does_not_beat_untrained_weights_is_marked(results: Path) -> None:
    config = {"seconds": 1.0, "threads": 1, "backbone": TINY, "image_size": 32}
    seen = {"pictures": 10, "epochs": 1.0, "loss_first": 2.0, "loss_last": 1.0, "knn_untrained": 1.0, "knn": 2.0}
    trained = [
        {"method": name, "config": config, "warning": None, "date": "2026-01-01", **seen} for name in ("swav", "mira")
    ]
    tops = {"untrained": (1.0, 1.2), "swav": (1.3, 1.5), "mira": (1.1, 3.0)}
    read = [
        {"method": name, "top1": top, "config": {"seed": seed, "epochs": 6, "rate": 0.02}}
        for name, values in tops.items()
        for seed, top in enumerate(values)
    ]
    _write(results, pretraining=trained, readout=read)
    lines = ssl_tables.pretraining().splitlines()
    last = {line.split(" | ")[0].strip("| "): line.split(" | ")[-1].strip("| ") for line in lines[2:5]}
    assert last == {"swav": "yes", "mira": "**no**", "untrained": ""}


def test_tables_without_rows_say_how_to_measure_them(results: Path) -> None:
    assert not list(results.iterdir())
    assert "python -m scripts.ssl_results" in ssl_tables.pretraining() == ssl_tables.chain()


def test_the_chain_has_a_row_for_each_step_in_order(results: Path) -> None:
    rows = [
        {
            "start": "swav",
            "step": step,
            "classes": 50 * (step + 1),
            "before_top1": before,
            "before_top5": before,
            "after_top1": 10.0 * step,
            "after_top5": 99.0,
            "date": "2026-01-01",
        }
        for step, before in ((1, 5.0), (0, None))
    ]
    _write(results, chain=rows)
    table = ssl_tables.chain().splitlines()
    assert table[2:4] == ["| swav | 50 |  |  | 0.0 | 99.0 |", "| swav | 100 | 5.0 | 5.0 | 10.0 | 99.0 |"]


def test_the_distance_from_the_paper_counts_pictures_and_their_area() -> None:
    row: Row = {"pictures": 256_000, "config": {"image_size": 112}}
    assert "1,000 times as many images as SwAV saw here, each 4 times as large" in ssl_tables.distance_from_paper(row)
