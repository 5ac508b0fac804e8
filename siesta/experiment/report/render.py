"""Panels rendered as SVG or PDF; the same drawing always gives the same bytes.

In an HTML page colours are CSS variables, so that one drawing serves light and dark mode.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siesta.errors import BadInput
from siesta.experiment.report.document import Panel
from siesta.experiment.report.style import BACKGROUND_COLOUR, GRID_COLOUR, INK_COLOUR, LIGHT_COLOURS, SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["inline_svg", "render_file", "render_panel"]

_WIDTH = 4.1  # inches
_HEIGHT = 3.0
_LEGEND_LINE_HEIGHT = 0.19
_LEGEND_LINE_LETTERS = 62
_LEGEND_MARKER_LETTERS = 6  # a marker is about as wide as that many letters


def inline_svg(panel: Panel, prefix: str) -> str:
    """Return a panel as an <svg> element for a page: text as text, colours as variables, ids with a prefix."""
    text = render_panel(panel, "svg", {"svg.fonttype": "none"}, legend=False).decode("utf-8")
    text = text[text.index("<svg") :].replace("xlink:href", "href")
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', _opening_tag(panel), text, count=1)
    for name, colour in _css_variables().items():
        text = text.replace(colour, f"var(--{name})")
    return text.strip()


def _opening_tag(panel: Panel) -> str:
    title = panel.title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("\\", "")
    return rf'<svg viewBox="\1" role="img" aria-label="{title}">'


def _css_variables() -> dict[str, str]:
    series = {f"s{index}": colour for index, colour in enumerate(LIGHT_COLOURS)}
    return {"ink": INK_COLOUR, "grid": GRID_COLOUR, "card": BACKGROUND_COLOUR, **series}


def render_file(panel: Panel, file_format: str) -> bytes:
    """Return a panel with its legend below it, "svg" or "pdf", on a white background."""
    return render_panel(panel, file_format, {"svg.fonttype": "path"}, legend=True)


def render_panel(panel: Panel, file_format: str, settings: Mapping[str, Any], *, legend: bool) -> bytes:
    """Return a panel as a file without dates; without a legend its background is transparent."""
    with _figure(settings) as figure:
        axes = figure.add_subplot()
        axes.set_title(panel.title)
        panel.draw(axes)
        if legend:
            _add_legend(figure, axes)
        file = io.BytesIO()
        no_dates = {"Date": None} if file_format == "svg" else {"CreationDate": None}
        figure.savefig(file, format=file_format, transparent=not legend, metadata={**no_dates, "Creator": None})
    return file.getvalue()


def _add_legend(figure: Figure, axes: Axes) -> None:
    """Add a legend in columns below the axes; the figure grows by its height."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    entry_letters = _LEGEND_MARKER_LETTERS + max(map(len, labels))
    columns = max(1, min(len(labels), int(_LEGEND_LINE_LETTERS / entry_letters)))
    figure.set_size_inches(_WIDTH, _HEIGHT + _LEGEND_LINE_HEIGHT * math.ceil(len(labels) / columns))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


@contextmanager
def _figure(settings: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield an empty figure in the report's style, regardless of the user's own settings of matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("figures need matplotlib: pip install 'siesta-learn[report]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        parameters: Any = {**SETTINGS, **settings}  # matplotlib types each key individually
        matplotlib.rcParams.update(parameters)
        yield Figure(figsize=(_WIDTH, _HEIGHT))
