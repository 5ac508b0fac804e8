"""The visual style of figures: colours, markers and dashes of series, and matplotlib's settings.

Colours are distinguishable with red-green colour blindness, and every series has its own marker.
"""

from __future__ import annotations

from typing import Any

from siesta.experiment.report.document import Series

__all__ = [
    "BACKGROUND_COLOUR",
    "DARK_COLOURS",
    "GRID_COLOUR",
    "INK_COLOUR",
    "LIGHT_COLOURS",
    "MARKER_GLYPHS",
    "SETTINGS",
    "line_style",
]

LIGHT_COLOURS = (
    *("#0072b2", "#b9508f", "#3a9bd6", "#b07d00", "#332288", "#d55e00"),
    *("#882255", "#009e73", "#6b7280", "#7b4b33", "#1f2933", "#7f8f00"),
)
"""Colours of series on a light background."""

DARK_COLOURS = (
    *("#4db3f0", "#f095c8", "#b5e3ff", "#f2c14e", "#a99cff", "#ff8a3d"),
    *("#ff6f91", "#2dd4a3", "#a7b0bd", "#c9967a", "#ffffff", "#d4e157"),
)
"""The same on a dark background."""

MARKER_GLYPHS = "●■▲◆▼✚✖★◀▶⬢⬟"
"""Characters that look like the markers, for the legends of a page."""

INK_COLOUR = "#1f2933"
GRID_COLOUR = "#d8dee6"
BACKGROUND_COLOUR = "#ffffff"

_MARKERS = "os^DvPX*<>hp"
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)))

SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK_COLOUR,
    "axes.grid": True,
    "axes.labelcolor": INK_COLOUR,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.color": GRID_COLOUR,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "siesta",
    "text.color": INK_COLOUR,
    "xtick.color": INK_COLOUR,
    "ytick.color": INK_COLOUR,
}
"""Values of matplotlib's rcParams."""


def line_style(series: Series) -> dict[str, Any]:
    """Return matplotlib's options for a series; no two of the first 36 series look alike."""
    repetition, colour = divmod(series.index, len(LIGHT_COLOURS))
    marker = _MARKERS[(colour + repetition) % len(_MARKERS)]
    return {
        "color": LIGHT_COLOURS[colour],
        "marker": marker,
        "linestyle": _DASHES[repetition % len(_DASHES)],
        "label": series.label,
        "markersize": 4.2 + 0.25 * colour,  # overlapping markers show at the rim
        "zorder": 3 - series.index / 100,  # the first series are drawn on top
    }
