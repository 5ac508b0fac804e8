"""Write every table and figure of README.md and docs/ from results/: python -m scripts.results [--check]."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from scripts.claims import claims
from scripts.experiment_tables import (
    COMPARISON,
    by_arrival,
    class_means,
    defaults,
    full,
    headline,
    headline_figure,
    miniature,
    protocol,
    search,
    small,
    study,
    summary_figure,
    trials,
)
from scripts.fault_tables import audit, faults, hostile_clients, soak
from scripts.measurement_tables import ROOT, bench, birds, demo, headlines, networks, rows_of, sleep_rounds, unknown
from scripts.ssl_tables import chain, pretraining
from scripts.study_tables import between_sleeps, heads, reject, sleep_variants, vector_tops
from siesta.cli.tour import TourStep, save_learning_curve
from siesta.errors import SiestaError

STUDIES = {
    "policies": {"siesta": "balanced_uniform", "siesta_uniform": "uniform"},
    "sleep_length": {"siesta": "updates_4800"},
    "sleep_frequency": {"siesta": "every_50"},
    "memory": {"siesta": "samples_5994"},
    "batch_size": {"siesta": "batch_32"},
    "offline_length": {"siesta": "siesta", "offline": "epochs_6"},
}

_WIDTH = 120

SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"demo": demo, "birds": birds, "defaults": defaults, "headline": headline, "headlines": headlines},
    "docs/features.md": {"vector_tops": vector_tops},
    "docs/networks.md": {"networks": networks},
    "docs/performance.md": {"bench": bench},
    "docs/pretraining.md": {
        "pretraining": pretraining,
        "chain": chain,
        "miniature": miniature,
        "miniature_search": partial(search, "tiny_imagenet/tiny_imagenet_search"),
    },
    "docs/reliability.md": {
        "faults": faults,
        "soak": soak,
        "unknown": unknown,
    },
    "docs/reject.md": {"reject": reject},
    "docs/security.md": {"audit": audit, "hostile_clients": hostile_clients},
    "docs/results.md": {
        **{name: partial(study, name, **of_small) for name, of_small in STUDIES.items()},
        "claims": claims,
        "comparison": partial(protocol, COMPARISON, "comparison"),
        "comparison_search": partial(search, "cub200/comparison_search"),
        "cifar100": partial(protocol, "cifar100/cifar100", "cifar100"),
        "long_tail_cub200": partial(protocol, "cub200/long_tail_cub200", "long_tail_cub200"),
        "long_tail_cifar100": partial(protocol, "cifar100/long_tail_cifar100", "long_tail_cifar100"),
        "class_means": class_means,
        "offline_gap": partial(trials, "cub200/offline_gap", "offline_gap"),
        "codebooks": partial(trials, "cub200/codebooks", "codebooks"),
        "heads": heads,
        "search": search,
        "between_sleeps": between_sleeps,
        "sleep_variants": sleep_variants,
        "sleep_rounds": sleep_rounds,
        "full": full,
        "by_arrival": by_arrival,
        "small": small,
    },
}


def main() -> None:
    """Write the files that are out of date, or with --check fail on the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if anything would change")
    options = parser.parse_args()
    try:
        contents = [*_pages(), *_figures()]
    except SiestaError as error:
        sys.exit(str(error))
    for name, content in contents:
        file = ROOT / name
        if file.exists() and file.read_bytes() == content:
            continue
        if options.check:
            sys.exit(f"{name} does not match results/: run make results")
        file.write_bytes(content)
        print(f"wrote {name}")


def _pages() -> Iterator[tuple[str, bytes]]:
    for page, sections in SECTIONS.items():
        text = (ROOT / page).read_text("utf-8")
        for name, make in sections.items():
            match = re.search(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", text, flags=re.DOTALL)
            if match is None:
                sys.exit(f"{page} has no section {name}")
            text = text[: match.end(1)] + _wrap_prose(make()) + "\n" + text[match.start(2) :]
        yield page, text.encode("utf-8")


def _wrap_prose(text: str) -> str:
    """Return Markdown whose lines have at most 120 columns, except rows of tables."""
    wrapper = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if line.startswith("|") else wrapper.fill(line) for line in text.split("\n"))


def _figures() -> Iterator[tuple[str, bytes]]:
    yield "docs/demo.png", _demo_picture()
    yield "docs/cub200.svg", headline_figure()
    yield "docs/summary.svg", summary_figure()


def _demo_picture() -> bytes:
    """Return the figure of the demo with its first seed."""
    rows = rows_of("demo")
    steps = [
        TourStep(**{name: row[name] for name in TourStep.__dataclass_fields__})
        for row in rows
        if row["config"]["seed"] == rows[0]["config"]["seed"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.png"
        save_learning_curve(steps, file)
        return file.read_bytes()


if __name__ == "__main__":
    main()
