"""Runs every benchmark and writes results/bench.jsonl: python -m benchmarks [--quick] [name ...]."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import codec, latency, life, policies, pretrain, service, sleep, store
from benchmarks.learners import NETWORKS
from benchmarks.measure import Row
from siesta.provenance import provenance

RESULTS = Path(__file__).parent.parent / "results" / "bench.jsonl"
Benches = dict[str, Callable[[], Iterator[Row]]]

BENCHES: Benches = {
    "codec": codec.run,
    "latency": latency.run,
    "life": life.run,
    "policies": policies.run,
    "pretrain": pretrain.run,
    "service": service.run,
    "sleep": sleep.run,
    "store": store.run,
}
QUICK: Benches = {
    **BENCHES,
    "latency": lambda: latency.run(image_size=64, networks=NETWORKS[:1]),
    "life": lambda: life.run(image_size=64, seconds=6),
    "policies": lambda: policies.run(samples=50_000),
    "pretrain": lambda: pretrain.run(sizes=(32,)),
    "service": lambda: service.run(image_size=64, seconds=6),
    "sleep": lambda: sleep.run([(NETWORKS[0], 64)]),
    "store": lambda: store.run(sizes=(10_000, 50_000)),
}


def main() -> None:
    """Prints a table as it goes; a quick run writes nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of {', '.join(BENCHES)}; all if left out")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}: choose from {', '.join(BENCHES)}")
    console = Console()
    rows: list[Row] = []
    for name in options.names or BENCHES:
        for found in (QUICK if options.quick else BENCHES)[name]():
            rows.append({"group": name, **found, **provenance()})
            console.print(f"{found['bench']}: {found['value']} {found['unit']} {found['config']}", soft_wrap=True)
    table = Table("benchmark", "value", "unit", "asked for")
    for found in rows:
        table.add_row(found["bench"], str(found["value"]), found["unit"], found["limit"])
    console.print(table)
    if not options.quick:
        _write(rows)
        console.print(f"wrote results/{RESULTS.name}")


def _write(rows: list[Row]) -> None:
    """Replaces the rows of the benchmarks that ran; the others stay."""
    ran = {row["group"] for row in rows}
    old = [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []
    kept = [row for row in old if row["group"] not in ran]
    ordered = sorted(kept + rows, key=lambda row: list(BENCHES).index(row["group"]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in ordered), encoding="utf-8")


if __name__ == "__main__":
    main()
