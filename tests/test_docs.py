"""The README is true: its figures are those of the results files, and every row says where it comes from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.experiment_tables import searched_setting
from siesta.experiment import load_config

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "results").rglob("*.jsonl"))


def test_readme_and_results_agree() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.results", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows
    kind = "schema" if path.name == "rows.jsonl" else "bench"  # an archived run, or anything else
    more = ("command", "data") if kind == "schema" and "studies" not in path.parts else ()  # those are older
    for row in rows:
        for name in (kind, "config", "date", "commit", *more):
            assert row.get(name), name
        assert {"cores", "processor", "system", "python", "torch"} <= row["machine"].keys()


def test_every_promise_is_shown_by_a_test_that_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "reliability.md").read_text("utf-8")))
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named and named <= set(re.findall(r"^def (test_\w+)", tests, flags=re.MULTILINE))


OURS = sorted((ROOT / "configs").glob("*.toml")) + sorted((ROOT / "configs" / "studies").glob("*.toml"))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_config_is_right(path: Path) -> None:
    config = load_config(path)
    assert config.name == path.stem
    assert f"siesta run {path.relative_to(ROOT)} --set data.path={config.data.path}" in path.read_text("utf-8")


def falls(settings: dict[str, Any]) -> bool:
    """Whether REMIND's learning rate falls within a class."""
    final = settings.get("final_rate")
    return final is not None and final < settings["rate"]


@pytest.mark.parametrize(
    ("name", "trials", "methods"),
    [
        ("cub200", "cub200/search", 7),
        ("cub200_small", "cub200/search", 7),
        ("tiny_imagenet", "tiny_imagenet/tiny_imagenet_search", 4),
        ("comparison", "cub200/comparison_search", 12),
    ],
)
def test_the_settings_of_the_protocols_are_those_that_the_search_found(name: str, trials: str, methods: int) -> None:
    if not (ROOT / "results" / trials).exists():
        pytest.skip(f"results/{trials} is not measured yet")
    best: dict[tuple[str, int | None, bool], tuple[float, float]] = {}
    for path in sorted((ROOT / "results" / trials).glob("*/rows.jsonl")):
        last = json.loads(path.read_text("utf-8").splitlines()[-1])
        key = last["kind"], last["settings"].get("rehearsals"), falls(last["settings"])
        value = last["settings"][searched_setting(last["kind"])]
        if value is not None:
            best[key] = max(best.get(key, (0.0, 0.0)), (last["top1"], -value))
    checked = 0
    for method in load_config(ROOT / "configs" / f"{name}.toml").methods:
        settings = method.settings.model_dump(by_alias=True)  # the keys of rows
        key = method.kind, settings.get("rehearsals"), falls(settings)
        if key in best:
            found = settings[searched_setting(method.kind)]
            assert (0.005 if found is None else found) == -best[key][1], key  # the network's own, for batches of 32
            checked += 1
    assert checked >= methods


def test_the_base_of_tiny_imagenet_is_the_best_that_was_tried() -> None:
    top1: dict[float, float] = {}
    for trial in load_config(ROOT / "configs" / "studies" / "tiny_imagenet_search.toml").methods:
        path = ROOT / "results" / "tiny_imagenet" / "tiny_imagenet_search" / f"{trial.name}-class_incremental-0"
        if trial.name.startswith("base") and trial.base and trial.base.lr:
            top1[trial.base.lr] = json.loads((path / "rows.jsonl").read_text("utf-8").splitlines()[0])["top1"]
    base = load_config(ROOT / "configs" / "tiny_imagenet.toml").base
    assert base and len(top1) == 4 and base.lr == max(top1, key=lambda rate: top1[rate])
