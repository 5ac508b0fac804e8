"""Drawings are reproducible and do not depend on the user's settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import matplotlib
import pytest

from siesta.errors import BadInput
from siesta.experiment.report.document import Panel, Series
from siesta.experiment.report.render import inline_svg, render_file, render_panel
from siesta.experiment.report.style import INK_COLOUR, LIGHT_COLOURS, line_style


def panel(words: str = "a & b < c") -> Panel:
    def draw(axes: Any) -> None:
        for place in range(3):
            axes.plot([1, 2], [place, 1], **line_style(Series(f"m{place}", place)))

    return Panel("name", words, draw)


def test_inline_svg_has_css_variables_and_text() -> None:
    text = inline_svg(panel(), "f1p0")
    assert text.startswith('<svg viewBox="0 0 ')
    assert text.endswith("</svg>")
    assert 'aria-label="a &amp; b &lt; c"' in text
    assert "<text" in text
    assert "var(--s0)" in text
    assert "var(--ink)" in text
    assert not any(colour in text for colour in (*LIGHT_COLOURS, INK_COLOUR))
    assert "http" not in text
    assert 'id="f1p0-' in text


@pytest.mark.parametrize("draw", [lambda: inline_svg(panel(), "a"), lambda: render_file(panel(), "svg")])
def test_svg_is_the_same_every_time(draw: Callable[[], object]) -> None:
    assert draw() == draw()


def test_files_have_no_dates_and_are_reproducible() -> None:
    svg, pdf = render_file(panel(), "svg"), render_file(panel(), "pdf")
    assert svg.startswith(b"<?xml")
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf
    assert b"<dc:date>" not in svg
    assert pdf == render_file(panel(), "pdf")


def test_the_users_settings_of_matplotlib_are_ignored_and_kept() -> None:
    before = render_file(panel(), "svg")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert render_panel(panel(), "svg", {"svg.fonttype": "path"}, legend=True) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"siesta-learn\[report\]"):
        render_file(panel(), "svg")
