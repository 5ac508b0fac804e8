"""What a report is made of, before it is a page or a text: sections of tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Cell", "Figure", "Listing", "Panel", "Part", "Report", "Section", "Series", "Table"]


@dataclass(frozen=True)
class Cell:
    """A value, what the paper printed in its place, and whether it is the best of its column."""

    text: str
    paper: str | None = None
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a title; the first column names each. `fold` is for one that only some will want to read."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    fold: bool = False


@dataclass(frozen=True)
class Series:
    """How one method looks in every figure: a place in the palette."""

    label: str
    place: int


@dataclass(frozen=True)
class Panel:
    """One set of axes: a name for its file, a title, and what draws it."""

    name: str
    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Figure:
    """Panels side by side that share a legend."""

    title: str
    caption: str
    panels: Sequence[Panel]
    series: Sequence[Series]


@dataclass(frozen=True)
class Listing:
    """Lines to copy, such as commands."""

    title: str
    lines: Sequence[str]


Part = str | Table | Figure | Listing


@dataclass(frozen=True)
class Section:
    """A heading (of level 2 or 3) and what is below it."""

    title: str
    level: int
    parts: Sequence[Part]


@dataclass(frozen=True)
class Report:
    """The whole of it."""

    title: str
    lead: str
    sections: Sequence[Section]

    def figures(self) -> Iterator[Figure]:
        """Every figure, in order."""
        for section in self.sections:
            yield from (part for part in section.parts if isinstance(part, Figure))
