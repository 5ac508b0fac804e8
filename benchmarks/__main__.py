"""Run every benchmark and write results/bench.jsonl: python -m benchmarks [--quick] [name ...]."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import codec, comparison, concurrency, edge, head, latency, policies, pretrain, service, sleep, store
from benchmarks.learners import NETWORKS
from benchmarks.measure import Row
from siesta.provenance import provenance

RESULTS = Path(__file__).parent.parent / "results" / "bench.jsonl"
Benchmarks = dict[str, Callable[[], Iterator[Row]]]

BENCHMARKS: Benchmarks = {
    "codec": codec.run,
    "comparison": comparison.run,
    "edge": edge.run,
    "head": head.run,
    "latency": latency.run,
    "life": concurrency.run,  # the group's name in results/bench.jsonl
    "policies": policies.run,
    "pretrain": pretrain.run,
    "service": service.run,
    "sleep": sleep.run,
    "store": store.run,
}
QUICK: Benchmarks = {
    **BENCHMARKS,
    "comparison": lambda: comparison.run(image_size=64, images=16, repeats=1),
    "edge": lambda: edge.run(image_size=64),
    "head": lambda: head.run(image_size=64, rounds=2, block=4),
    "latency": lambda: latency.run(image_size=64, networks=NETWORKS[:1]),
    "life": lambda: concurrency.run(image_size=64, seconds=6),
    "policies": lambda: policies.run(samples=50_000),
    "pretrain": lambda: pretrain.run(sizes=(32,)),
    "service": lambda: service.run(image_size=64, seconds=6),
    "sleep": lambda: sleep.run([(NETWORKS[0], 64)]),
    "store": lambda: store.run(sizes=(10_000, 50_000)),
}


def main() -> None:
    """Run the chosen benchmarks, print their rows and, unless `--quick` is given, write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="run small sizes only, and write nothing")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}: choose from {', '.join(BENCHMARKS)}")
    console = Console()
    rows: list[Row] = []
    for name in options.names or BENCHMARKS:
        for row in (QUICK if options.quick else BENCHMARKS)[name]():
            rows.append({"group": name, **row, **provenance()})
            console.print(f"{row['bench']}: {row['value']} {row['unit']} {row['config']}", soft_wrap=True)
    table = Table("benchmark", "value", "unit", "limit")
    for row in rows:
        table.add_row(row["bench"], str(row["value"]), row["unit"], row["limit"])
    console.print(table)
    if not options.quick:
        _write(rows)
        console.print(f"wrote results/{RESULTS.name}")


def _write(rows: list[Row]) -> None:
    """Replace the rows of the benchmarks that ran, and keep the others."""
    replaced = {row["group"] for row in rows}
    old = [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []
    kept = [row for row in old if row["group"] not in replaced]
    ordered = sorted(kept + rows, key=lambda row: list(BENCHMARKS).index(row["group"]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in ordered), encoding="utf-8")


if __name__ == "__main__":
    main()
