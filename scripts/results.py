"""Writes every measured table and figure of README.md and docs/ from results/: python -m scripts.results [--check]."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from scripts.experiments import (
    by_arrival,
    class_means,
    full,
    headline,
    headline_figure,
    miniature,
    search,
    small,
    study,
)
from scripts.measured import ROOT, bench, birds, demo, headlines, rows_of, unknown
from scripts.ssl import chain, pretraining
from siesta.demo import Step, draw
from siesta.errors import SiestaError

STUDIES = {
    "policies": {"siesta": "balanced_uniform", "siesta_uniform": "uniform"},
    "sleep_length": {"siesta": "updates_4800"},
    "sleep_frequency": {"siesta": "every_50"},
    "memory": {"siesta": "samples_5994"},
    "batch_size": {"siesta": "batch_32"},
    "offline_length": {"siesta": "siesta", "offline": "epochs_6"},
}

SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"demo": demo, "birds": birds, "headline": headline, "headlines": headlines},
    "docs/performance.md": {"bench": bench},
    "docs/pretraining.md": {
        "pretraining": pretraining,
        "chain": chain,
        "miniature": miniature,
        "miniature_search": partial(search, "tiny_imagenet/tiny_imagenet_search"),
    },
    "docs/reliability.md": {"unknown": unknown},
    "docs/results.md": {
        **{name: partial(study, name, **of_small) for name, of_small in STUDIES.items()},
        "class_means": class_means,
        "search": search,
        "full": full,
        "by_arrival": by_arrival,
        "small": small,
    },
}


def main() -> None:
    """Writes what is out of date, or with --check names it."""
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
            sys.exit(f"{name} and results/ disagree: run make results")
        file.write_bytes(content)
        print(f"wrote {name}")


def _pages() -> Iterator[tuple[str, bytes]]:
    for page, sections in SECTIONS.items():
        text = (ROOT / page).read_text("utf-8")
        for name, make in sections.items():
            match = re.search(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", text, flags=re.DOTALL)
            if match is None:
                sys.exit(f"{page} has no section {name}")
            text = text[: match.end(1)] + make() + "\n" + text[match.start(2) :]
        yield page, text.encode("utf-8")


def _figures() -> Iterator[tuple[str, bytes]]:
    yield "docs/demo.png", _demo_picture()
    yield "docs/cub200.svg", headline_figure()


def _demo_picture() -> bytes:
    """The demo with its first seed."""
    rows = rows_of("demo")
    steps = [
        Step(**{name: row[name] for name in Step.__dataclass_fields__})
        for row in rows
        if row["config"]["seed"] == rows[0]["config"]["seed"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.png"
        draw(steps, file)
        return file.read_bytes()


if __name__ == "__main__":
    main()
