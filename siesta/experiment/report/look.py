"""The house look of figures, and how a drawing becomes SVG or PDF: the same drawing gives the same bytes.

Colours are told apart by people who see red and green alike, and every series has a marker of its own. Inside a page
colours are CSS variables, so that one drawing serves light and dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siesta.errors import BadInput
from siesta.experiment.report.document import Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["DARK", "GLYPHS", "GRID", "INK", "LIGHT", "PAPER", "drawn", "inline_svg", "line_style", "standalone"]

LIGHT = (
    *("#0072b2", "#b9508f", "#3a9bd6", "#b07d00", "#332288", "#d55e00"),
    *("#882255", "#009e73", "#6b7280", "#7b4b33", "#1f2933", "#7f8f00"),
)
DARK = (
    *("#4db3f0", "#f095c8", "#b5e3ff", "#f2c14e", "#a99cff", "#ff8a3d"),
    *("#ff6f91", "#2dd4a3", "#a7b0bd", "#c9967a", "#ffffff", "#d4e157"),
)
GLYPHS = "●■▲◆▼✚✖★◀▶⬢⬟"
INK, GRID, PAPER = "#1f2933", "#d8dee6", "#ffffff"
_MARKERS = "os^DvPX*<>hp"
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
_LETTERS, _SIGN, _LINE = 62, 6, 0.19  # letters on a line of a legend, those that a sign takes, inches of a line


def line_style(series: Series) -> dict[str, Any]:
    """Colour, marker and dashes of a series; no two of the first 36 are alike."""
    again, place = divmod(series.place, len(LIGHT))
    marker = _MARKERS[(place + again) % len(_MARKERS)]
    return {
        "color": LIGHT[place],
        "marker": marker,
        "linestyle": _DASHES[again % len(_DASHES)],
        "label": series.label,
        "markersize": 4.2 + 0.25 * place,  # what lies below shows at the rim
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
    """A panel with its legend below it as a file for a paper, "svg" or "pdf", on white."""
    return drawn(panel, kind, {"svg.fonttype": "path"}, legend=True)


def drawn(panel: Panel, kind: str, look: Mapping[str, Any], *, legend: bool) -> bytes:
    """A panel as a file without dates; without a legend it has no background either."""
    with _drawing(look) as drawing:
        axes = drawing.add_subplot()
        axes.set_title(panel.title)
        panel.draw(axes)
        if legend:
            _legend(drawing, axes)
        file = io.BytesIO()
        dates = {"Date": None} if kind == "svg" else {"CreationDate": None}
        drawing.savefig(file, format=kind, transparent=not legend, metadata={**dates, "Creator": None})
    return file.getvalue()


def _legend(drawing: Drawing, axes: Axes) -> None:
    """Below the axes, in columns; the drawing grows by its height."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = max(1, min(len(labels), int(_LETTERS / (_SIGN + max(map(len, labels))))))
    width, height = _INCHES
    drawing.set_size_inches(width, height + _LINE * math.ceil(len(labels) / columns))
    drawing.legend(handles, labels, loc="outside lower center", ncols=columns)


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
