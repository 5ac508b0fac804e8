"""Recorded runs stay valid: configs keep their hashes, and files and rows the key names of version 0.1.

This concerns config.py, config_file.py, config_schema.py and the rows of run.py alike. `config_hashes.json` was written
by version 0.1 and is never regenerated: it has the hash of every config, method and order with the config's first seed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.experiment import load_config, planned_runs, read_dataset, run_all
from siesta.experiment.config import Config, MethodEntry
from siesta.experiment.results import read_results
from siesta.experiment.run_folder import read_rows
from tests.experiment.conftest import WriteConfig

ROOT = Path(__file__).resolve().parents[2]
HASHES: dict[str, str] = json.loads(Path(__file__).with_name("config_hashes.json").read_text("utf-8"))

BASE = "classes_per_step = 2\nbase_classes = 2\n\n[base]\nepochs = 3\n{key} = 0.2\n"
REMIND = "[methods.remind]\nrehearsals = 2\nrate = 0.01"


def test_every_config_of_0_1_has_its_hashes() -> None:
    recomputed = {}
    for file in sorted((ROOT / "configs").rglob("*.toml")):
        config = load_config(file)
        for order in config.orders:
            for method in config.methods:
                key = f"{file.relative_to(ROOT)} {method.name} {order.name}"
                recomputed[key] = config.identity(order, method, config.seeds[0])
    assert len(HASHES) == 218
    assert {key: recomputed.get(key) for key in HASHES} == HASHES


def test_the_hashes_are_those_of_recorded_runs() -> None:
    """Rows of results/ have the hash of their config before the hashes of stream and test set."""
    runs = read_results([ROOT / "results" / "cub200" / "cub200"]).runs
    assert runs
    for run in runs:
        row = run.last
        if row["seed"] == 0:
            key = f"configs/cub200.toml {row['method']} {row['order']['name']}"
            assert row["config"].split("-")[0] == HASHES[key]


def method_of(config: Config, name: str) -> MethodEntry:
    (found,) = [method for method in config.methods if method.name == name]
    return found


def hashes_of(config: Config) -> list[str]:
    return [config.identity(config.orders[0], method, 0) for method in config.methods]


def test_old_and_new_keys_mean_the_same_in_base_and_methods(write_config: WriteConfig) -> None:
    def load(lr: str, final_lr: str) -> Config:
        path = write_config("classes_per_step = 2", BASE.format(key=lr))
        text = path.read_text("utf-8")
        own = f"[methods.remind]\nrehearsals = 2\n{lr} = 0.01\n{final_lr} = 0.001\nbase = {{ {lr} = 0.1 }}"
        assert REMIND in text
        path.write_text(text.replace(REMIND, own), "utf-8")
        return load_config(path, orders=["class_incremental"])

    old = load("rate", "final_rate")
    remind = method_of(old, "remind")
    assert old.base is not None and old.base.lr == 0.2
    assert remind.base is not None and remind.base.lr == 0.1
    settings = remind.settings.model_dump()
    assert (settings["lr"], settings["final_lr"]) == (0.01, 0.001)
    assert hashes_of(old) == hashes_of(load("lr", "final_lr"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("base.rate=0.5", "base.lr=0.5"),
        ("base={rate=0.5}", "base={lr=0.5}"),
        ("methods.remind.rate=0.5", "methods.remind.lr=0.5"),
        ("methods.remind.final_rate=0.5", "methods.remind.final_lr=0.5"),
        ("methods.remind.base.rate=0.5", "methods.remind.base.lr=0.5"),
        ("methods.remind={rate=0.5, base={rate=0.1}}", "methods.remind={lr=0.5, base={lr=0.1}}"),
    ],
)
def test_old_and_new_keys_mean_the_same_with_set(write_config: WriteConfig, old: str, new: str) -> None:
    path = write_config("classes_per_step = 2", BASE.format(key="rate"))
    loaded = [load_config(path, [change], orders=["class_incremental"]) for change in (old, new)]
    unchanged = load_config(path, orders=["class_incremental"])
    assert hashes_of(loaded[0]) == hashes_of(loaded[1]) != hashes_of(unchanged)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("rate = 0.01", "rate = 0.01\nlr = 0.01", "'rate' is the old name of 'lr'"),
        ("rate = 0.01", "final_rate = 0.01\nfinal_lr = 0.01", "'final_rate' is the old name of 'final_lr'"),
        ("rate = 0.01", "base = { rate = 0.01, lr = 0.01 }", "'rate' is the old name of 'lr'"),
        ("image_size = 32", "image_size = 32\n\n[base]\nrate = 0.1\nlr = 0.1", "'rate' is the old name of 'lr'"),
    ],
)
def test_old_and_new_keys_together_are_refused(write_config: WriteConfig, old: str, new: str, key: str) -> None:
    with pytest.raises(BadInput, match=rf"toy\.toml: {key}: remove one of them"):
        load_config(write_config(old, new))


def test_old_and_new_keys_together_are_refused_with_set(write_config: WriteConfig) -> None:
    with pytest.raises(BadInput, match="cannot be set: 'rate' is the old name of 'lr'"):
        load_config(write_config(), ["methods.remind={rate=0.5, lr=0.5}"])


def test_rows_are_written_and_read_with_the_old_keys(write_config: WriteConfig, tmp_path: Path) -> None:
    config = load_config(write_config(), methods=["remind"], orders=["class_incremental"])
    dataset = read_dataset(config)
    rows = list(run_all(planned_runs(config, dataset), dataset, tmp_path / "out"))
    for row in (*rows, *read_rows(tmp_path / "out" / "runs" / "remind-class_incremental-0")):
        assert row["settings"]["rate"] == 0.01
        assert "final_rate" in row["settings"]
        assert not {"lr", "final_lr"} & row["settings"].keys()
    (run,) = read_results([tmp_path / "out"]).runs
    assert run.last["settings"] == rows[-1]["settings"]


def test_rows_of_0_1_are_read() -> None:
    runs = read_results([ROOT / "results" / "cub200" / "cub200_small"]).runs
    rates = {run.last["settings"]["rate"] for run in runs if run.last["method"] == "remind"}
    assert rates == {0.0003}
