"""A report as one HTML page without scripts or external resources, for light and dark mode and any width."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from siesta.experiment.report.document import (
    Block,
    Cell,
    CodeListing,
    ReportDocument,
    ReportFigure,
    ReportSection,
    ReportTable,
    Series,
)
from siesta.experiment.report.render import inline_svg
from siesta.experiment.report.style import DARK_COLOURS, LIGHT_COLOURS, MARKER_GLYPHS

__all__ = ["render_html"]

_CSS = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5d6875; --grid: #d8dee6; --card: #ffffff; --ground: #f5f7f9;
  --accent: #0072b2; LIGHT_SERIES }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #98a4b3; --grid: #303a46; --card: #171d24;
  --ground: #0e1217; --accent: #4db3f0; DARK_SERIES } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .2rem; padding-top: 1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .4rem 0; max-width: 48rem; } .lead { color: var(--soft); }
nav { margin: 1rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1rem; font-size: .9rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
.card { background: var(--card); border: 1px solid var(--grid); border-radius: .6rem; padding: 1rem; margin: .8rem 0; }
.scroll { overflow-x: auto; margin: 0 -1rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .87rem; }
.title, summary { text-align: left; font-weight: 600; padding-bottom: .4rem; font-size: .95rem; }
summary { cursor: pointer; padding: 0; } details[open] summary { padding-bottom: .6rem; }
th, td { padding: .3rem .55rem; text-align: right; white-space: nowrap; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--ink); white-space: normal;
  vertical-align: bottom; line-height: 1.25; }
tbody tr + tr > * { border-top: 1px solid var(--grid); } tbody th { font-weight: 500; }
td b { font-weight: 700; } .paper { display: block; color: var(--soft); font-size: .92em; }
.note { color: var(--soft); font-size: .84rem; margin: .6rem 0 0; max-width: 60rem; }
figure { margin: .8rem 0; }
.panels { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(16.5rem, 1fr)); }
.panels svg { width: 100%; height: auto; display: block; max-width: 31rem; margin: 0 auto; }
svg text { font-family: inherit !important; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; font-size: .87rem; padding: 0; margin: 0 0 .5rem;
  list-style: none; }
pre { overflow-x: auto; margin: 0; font: .82rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (max-width: 40rem) { main { padding: 1rem .6rem 3rem; } h1 { font-size: 1.5rem; } .card { padding: .7rem; }
  .scroll { margin: 0 -.7rem; padding: 0 .7rem; } }
@media print { body { background: none; } .card { break-inside: avoid; } nav { display: none; } }
"""


def render_html(report: ReportDocument) -> str:
    """Return the whole page; the same report gives the same text."""
    body = "\n".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_css()}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _css() -> str:
    return _CSS.replace("LIGHT_SERIES", _colour_variables(LIGHT_COLOURS)).replace(
        "DARK_SERIES", _colour_variables(DARK_COLOURS)
    )


def _colour_variables(colours: Sequence[str]) -> str:
    return " ".join(f"--s{index}: {colour};" for index, colour in enumerate(colours))


def _body(report: ReportDocument) -> Iterator[str]:
    yield f'<h1>{escape(report.title)}</h1>\n<p class="lead">{escape(report.lead)}</p>'
    yield f"<nav>{' '.join(_link(number, section) for number, section in enumerate(report.sections))}</nav>"
    figures = 0
    for number, section in enumerate(report.sections):
        yield f'<h{section.level} id="part-{number}">{escape(section.title)}</h{section.level}>'
        for block in section.blocks:
            figures += isinstance(block, ReportFigure)
            yield _render_block(block, f"f{figures}")


def _link(number: int, section: ReportSection) -> str:
    text = escape(section.title)
    return f'<a href="#part-{number}">{f"<b>{text}</b>" if section.level == 2 else text}</a>'


def _render_block(block: Block, name: str) -> str:
    match block:
        case ReportTable():
            return _render_table(block)
        case ReportFigure():
            return _render_figure(block, name)
        case CodeListing():
            lines = escape("\n".join(block.lines))
            return f'<div class="card"><div class="title">{escape(block.title)}</div><pre>{lines}</pre></div>'
        case _:
            return f"<p>{escape(block)}</p>"


def _render_table(table: ReportTable) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = "\n".join(f"<tr>{_row_head(row[0])}{''.join(map(_render_cell, row[1:]))}</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    content = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    scrollable = f'<div class="scroll"><table aria-label="{escape(table.title)}">{content}</table></div>{note}'
    if table.collapsible:
        return f'<details class="card"><summary>{escape(table.title)}</summary>{scrollable}</details>'
    return f'<div class="card"><div class="title">{escape(table.title)}</div>{scrollable}</div>'


def _row_head(cell: Cell) -> str:
    return _render_cell(cell).replace("<td>", '<th scope="row">').replace("</td>", "</th>")


def _render_cell(cell: Cell) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    paper = f'<span class="paper">{escape(cell.paper)}</span>' if cell.paper else ""
    return f"<td>{text}{paper}</td>"


def _render_figure(figure: ReportFigure, name: str) -> str:
    panels = "\n".join(inline_svg(panel, f"{name}p{number}") for number, panel in enumerate(figure.panels))
    legend = "".join(f"<li>{_marker(series)} {escape(series.label)}</li>" for series in figure.series)
    return (
        f'<figure class="card"><div class="title">{escape(figure.title)}</div><ul class="legend">{legend}</ul>'
        f'<div class="panels">{_without_indentation(panels)}</div>'
        f'<figcaption class="note">{escape(figure.caption)}</figcaption></figure>'
    )


def _marker(series: Series) -> str:
    repetition, colour = divmod(series.index, len(LIGHT_COLOURS))
    glyph = MARKER_GLYPHS[(colour + repetition) % len(MARKER_GLYPHS)]
    return f'<span style="color: var(--s{colour})">{glyph}</span>'


def _without_indentation(text: str) -> str:
    return re.sub(r"\n\s*", "\n", text)
