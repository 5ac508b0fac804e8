from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import matplotlib
import pytest

from siesta.errors import BadInput
from siesta.experiment.report.document import Panel, Series
from siesta.experiment.report.look import DARK, GLYPHS, INK, LIGHT, drawn, inline_svg, line_style, standalone


def panel(words: str = "a & b < c") -> Panel:
    def draw(axes: Any) -> None:
        for place in range(3):
            axes.plot([1, 2], [place, 1], **line_style(Series(f"m{place}", place)))

    return Panel("name", words, draw)


def test_no_two_series_look_alike() -> None:
    looks = [{**line_style(Series("x", place)), "zorder": 0} for place in range(36)]
    assert all(one != other for number, one in enumerate(looks) for other in looks[:number])
    assert len(LIGHT) == len(DARK) == len(GLYPHS) == len(set(LIGHT)) == len(set(DARK))


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("colours", "ground"), [(LIGHT, "#ffffff"), (DARK, "#171d24")])
def test_series_stand_out_from_the_ground(colours: tuple[str, ...], ground: str) -> None:
    for colour in colours:
        bright, dim = sorted((luminance(colour) + 0.05, luminance(ground) + 0.05), reverse=True)
        assert bright / dim >= 3, colour  # what WCAG asks of graphics


def test_inside_a_page_colours_are_variables_and_text_is_text() -> None:
    text = inline_svg(panel(), "f1p0")
    assert text.startswith('<svg viewBox="0 0 ')
    assert text.endswith("</svg>")
    assert 'aria-label="a &amp; b &lt; c"' in text
    assert "<text" in text
    assert "var(--s0)" in text
    assert "var(--ink)" in text
    assert not any(colour in text for colour in (*LIGHT, INK))
    assert "http" not in text
    assert 'id="f1p0-' in text


@pytest.mark.parametrize("draw", [lambda: inline_svg(panel(), "a"), lambda: standalone(panel(), "svg")])
def test_svg_is_the_same_every_time(draw: Callable[[], object]) -> None:
    assert draw() == draw()


def test_files_are_for_papers() -> None:
    svg, pdf = standalone(panel(), "svg"), standalone(panel(), "pdf")
    assert svg.startswith(b"<?xml")
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf
    assert b"<dc:date>" not in svg
    assert pdf == standalone(panel(), "pdf")


def test_the_readers_own_settings_do_not_matter_and_stay() -> None:
    before = standalone(panel(), "svg")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert drawn(panel(), "svg", {"svg.fonttype": "path"}, legend=True) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"siesta-learn\[report\]"):
        standalone(panel(), "svg")
