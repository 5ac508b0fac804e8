"""The house look of figures, and how a drawing becomes SVG or PDF: the same drawing gives the same bytes.

Colours are told apart by people who see red and green alike, and every series has a marker of its own. Inside a page
colours are CSS variables, so that one drawing serves light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siesta.errors import BadInput
from siesta.experiment.report.document import Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["DARK", "GLYPHS", "GRID", "INK", "LIGHT", "PAPER", "drawn", "inline_svg", "line_style", "standalone"]

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b9508f", "#b07d00", "#3a9bd6", "#6b7280", "#7b4b33")
DARK = ("#4db3f0", "#ff8a3d", "#2dd4a3", "#f095c8", "#f2c14e", "#b5e3ff", "#a7b0bd", "#c9967a")
GLYPHS = "●■▲◆▼✚✖★"
INK, GRID, PAPER = "#1f2933", "#d8dee6", "#ffffff"
_MARKERS = "os^DvPX*"
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)))
_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "siesta",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
_INCHES = (4.1, 3.0)


def line_style(series: Series) -> dict[str, Any]:
    """Colour, marker and dashes of a series; no two of the first 24 are alike."""
    again, place = divmod(series.place, len(LIGHT))
    marker = _MARKERS[(place + again) % len(_MARKERS)]
    return {
        "color": LIGHT[place],
        "marker": marker,
        "linestyle": _DASHES[again % len(_DASHES)],
        "label": series.label,
        "zorder": 3 - series.place / 100,  # the first ones lie on top
    }


def inline_svg(panel: Panel, prefix: str) -> str:
    """A panel as an <svg> element of a page: text stays text, colours are variables, ids are its own."""
    text = drawn(panel, "svg", {"svg.fonttype": "none"}, legend=False).decode("utf-8")
    text = text[text.index("<svg") :].replace("xlink:href", "href")
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', _opening(panel), text, count=1)
    for name, colour in _variables().items():
        text = text.replace(colour, f"var(--{name})")
    return text.strip()


def _opening(panel: Panel) -> str:
    title = panel.title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("\\", "")
    return rf'<svg viewBox="\1" role="img" aria-label="{title}">'


def _variables() -> dict[str, str]:
    return {"ink": INK, "grid": GRID, "card": PAPER, **{f"s{place}": colour for place, colour in enumerate(LIGHT)}}


def standalone(panel: Panel, kind: str) -> bytes:
    """A panel with its legend as a file for a paper, "svg" or "pdf"."""
    return drawn(panel, kind, {"svg.fonttype": "path"}, legend=True)


def drawn(panel: Panel, kind: str, look: Mapping[str, Any], *, legend: bool) -> bytes:
    """A panel as a file without dates, on no background."""
    with _drawing(look) as drawing:
        axes = drawing.add_subplot()
        axes.set_title(panel.title)
        panel.draw(axes)
        if legend and axes.get_legend_handles_labels()[0]:
            axes.legend()
        file = io.BytesIO()
        dates = {"Date": None} if kind == "svg" else {"CreationDate": None}
        drawing.savefig(file, format=kind, transparent=True, metadata={**dates, "Creator": None})
    return file.getvalue()


@contextmanager
def _drawing(look: Mapping[str, Any]) -> Iterator[Drawing]:
    """An empty drawing in the house look, whatever the reader's own settings are."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Drawing
    except ImportError as error:
        raise BadInput("figures need matplotlib: pip install 'siesta-learn[report]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = {**_LOOK, **look}  # each key of matplotlib has a type of its own
        matplotlib.rcParams.update(settings)
        yield Drawing(figsize=_INCHES)
