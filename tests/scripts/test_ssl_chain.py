"""The choice of the method that the chain starts from; `test_ssl_results.py` runs the chain itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.ssl_chain import best_method
from siesta.errors import BadInput

TOP1 = {"swav": [1.0, 5.0], "mira": [2.5, 2.5], "supervised": [9.0, 9.0], "untrained": [8.0, 8.0]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [{"method": name, "top1": value} for name, values in TOP1.items() for value in values]
    (tmp_path / "readout.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return tmp_path


def test_the_best_mean_of_the_given_methods_without_labels_is_chosen(results: Path) -> None:
    assert best_method(["mira", "supervised", "swav", "seed"], results) == "swav"
    assert best_method(["mira", "supervised"], results) == "mira"


def test_without_a_read_out_there_is_nothing_to_choose(results: Path) -> None:
    with pytest.raises(BadInput, match="run --parts readout, or give --starts"):
        best_method(["seed", "supervised"], results)
