"""Files that `scripts.ssl_results` reads and writes: rows of results, and pictures of classes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from siesta.data import Dataset, Split
from siesta.provenance import provenance

__all__ = ["Row", "add_row", "console", "link_pictures", "picture_labels", "pictures_of_classes", "read_rows"]

Row = dict[str, Any]
console = Console(soft_wrap=True)


def read_rows(results: Path, name: str) -> list[Row]:
    """Return the rows of a file of results; none if it does not exist."""
    file = results / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def add_row(results: Path, name: str, row: Row) -> None:
    """Append a row with its provenance to a file of results."""
    with (results / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, **provenance()}) + "\n")
    console.print({key: value for key, value in row.items() if key not in ("config", "history")})


def picture_labels(data: Dataset, split: Split) -> list[tuple[Path, str]]:
    """Return the pictures of a split with the names of their classes."""
    names = (data.classes[label] for label in split.labels.tolist())
    return [(Path(str(picture)), name) for picture, name in zip(split.pictures, names, strict=True)]


def pictures_of_classes(data: Dataset, split: Split, start: int, end: int) -> list[tuple[Path, str]]:
    """Return the pictures of classes `start` to `end` - 1."""
    classes = set(data.classes[start:end])
    return [(file, label) for file, label in picture_labels(data, split) if label in classes]


def link_pictures(name: str, files: Iterable[tuple[Path, str]], work: Path) -> Path:
    """Return a folder `work/name/<label>/*` of links to pictures."""
    folder = work / name
    for file, label in files:
        link = folder / label / file.name
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.absolute())
    return folder
