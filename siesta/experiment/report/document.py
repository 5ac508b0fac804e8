"""The parts of a report, independent of its output format: sections of tables, figures, listings and paragraphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Block",
    "Cell",
    "CodeListing",
    "Panel",
    "ReportDocument",
    "ReportFigure",
    "ReportSection",
    "ReportTable",
    "Series",
]


@dataclass(frozen=True)
class Cell:
    """A value, the value that the paper printed for it, and whether it is the best of its column."""

    text: str
    paper: str | None = None
    best: bool = False


@dataclass(frozen=True)
class ReportTable:
    """Rows under a title; the first column names each row. A `collapsible` table is shown on demand."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    collapsible: bool = False


@dataclass(frozen=True)
class Series:
    """The label of a method and the index of its colour and marker, the same in every figure."""

    label: str
    index: int


@dataclass(frozen=True)
class Panel:
    """One set of axes: a name for its file, a title, and the function that draws it."""

    name: str
    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class ReportFigure:
    """Panels side by side that share a legend."""

    title: str
    caption: str
    panels: Sequence[Panel]
    series: Sequence[Series]


@dataclass(frozen=True)
class CodeListing:
    """Lines to copy, such as commands."""

    title: str
    lines: Sequence[str]


Block = str | ReportTable | ReportFigure | CodeListing
"""A part of a section; a string is a paragraph."""


@dataclass(frozen=True)
class ReportSection:
    """A heading of level 2 or 3 and the blocks below it."""

    title: str
    level: int
    blocks: Sequence[Block]


@dataclass(frozen=True)
class ReportDocument:
    """A whole report; `lead` is the paragraph below the title."""

    title: str
    lead: str
    sections: Sequence[ReportSection]

    def figures(self) -> Iterator[ReportFigure]:
        """Yield every figure in order."""
        for section in self.sections:
            yield from (block for block in section.blocks if isinstance(block, ReportFigure))
