"""A report as Markdown: tables and sentences; figures are named, not drawn."""

from __future__ import annotations

from siesta.experiment.report.document import Cell, Figure, Listing, Part, Report, Table

__all__ = ["markdown", "markdown_table"]


def markdown(report: Report) -> str:
    """The whole report, without its figures."""
    parts = [f"# {_safe(report.title)}", _safe(report.lead)]
    for section in report.sections:
        told = [text for part in section.parts if (text := _part(part))]
        parts += [f"{'#' * section.level} {_safe(section.title)}", *told]
    return "\n\n".join(parts) + "\n"


def _part(part: Part) -> str:
    match part:
        case Table():
            return markdown_table(part)
        case Listing():
            return f"**{_safe(part.title)}**\n\n```\n" + "\n".join(part.lines) + "\n```"
        case Figure():
            return ""
        case _:
            return _safe(part)


def markdown_table(table: Table) -> str:
    """A table with its title and note; what the paper printed stands in brackets."""
    lines = [
        [_safe(name) for name in table.columns],
        ["---", *["---:"] * (len(table.columns) - 1)],
        *([_cell(cell) for cell in row] for row in table.rows),
    ]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if table.note:
        text += f"\n\n{_safe(table.note)}"
    if table.fold:
        return f"<details><summary>{_safe(table.title)}</summary>\n\n{text}\n\n</details>"
    return f"**{_safe(table.title)}**\n\n{text}"


def _cell(cell: Cell) -> str:
    text = f"**{_safe(cell.text)}**" if cell.best else _safe(cell.text)
    return f"{text} ({_safe(cell.paper)})" if cell.paper else text


def _safe(text: str) -> str:
    """Names are text, never markup."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
