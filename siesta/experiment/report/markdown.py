"""A report as Markdown: tables, listings and paragraphs, without figures."""

from __future__ import annotations

from siesta.experiment.report.document import Block, Cell, CodeListing, ReportDocument, ReportFigure, ReportTable

__all__ = ["render_markdown", "render_markdown_table"]


def render_markdown(report: ReportDocument) -> str:
    """Return the whole report without its figures."""
    paragraphs = [f"# {_escape(report.title)}", _escape(report.lead)]
    for section in report.sections:
        texts = [text for block in section.blocks if (text := _render_block(block))]
        paragraphs += [f"{'#' * section.level} {_escape(section.title)}", *texts]
    return "\n\n".join(paragraphs) + "\n"


def _render_block(block: Block) -> str:
    match block:
        case ReportTable():
            return render_markdown_table(block)
        case CodeListing():
            return f"**{_escape(block.title)}**\n\n```\n" + "\n".join(block.lines) + "\n```"
        case ReportFigure():
            return ""
        case _:
            return _escape(block)


def render_markdown_table(table: ReportTable) -> str:
    """Return a table with its title and note; values of the paper are in brackets."""
    lines = [
        [_escape(name) for name in table.columns],
        ["---", *["---:"] * (len(table.columns) - 1)],
        *([_render_cell(cell) for cell in row] for row in table.rows),
    ]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if table.note:
        text += f"\n\n{_escape(table.note)}"
    if table.collapsible:
        return f"<details><summary>{_escape(table.title)}</summary>\n\n{text}\n\n</details>"
    return f"**{_escape(table.title)}**\n\n{text}"


def _render_cell(cell: Cell) -> str:
    text = f"**{_escape(cell.text)}**" if cell.best else _escape(cell.text)
    return f"{text} ({_escape(cell.paper)})" if cell.paper else text


def _escape(text: str) -> str:
    """Escape everything that Markdown would read as markup."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")
