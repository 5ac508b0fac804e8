"""What siesta's conformance tests need to know of these parts: `pytest -p outside_parts.examples -k "..."`."""

from __future__ import annotations

from pathlib import Path

from tests.data.layouts import LAYOUTS
from tests.data.orders.test_orders import OPTIONS
from tests.methods.test_conformance import DETERMINISTIC


def _colour_list(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    file = path / "colours.txt"
    file.write_text("red 200 30 30\ngreen 30 200 30\nblue 30 30 200\n")
    return file


LAYOUTS["colour_list"] = _colour_list
OPTIONS["backwards"] = {"classes_per_step": 2}
DETERMINISTIC.add("cosine_means")
