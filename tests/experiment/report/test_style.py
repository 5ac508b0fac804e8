"""Series are told apart from each other and from the background."""

from __future__ import annotations

import pytest

from siesta.experiment.report.document import Series
from siesta.experiment.report.style import DARK_COLOURS, LIGHT_COLOURS, MARKER_GLYPHS, line_style


def test_no_two_series_look_alike() -> None:
    looks = [{**line_style(Series("x", place)), "zorder": 0} for place in range(36)]
    assert all(one != other for number, one in enumerate(looks) for other in looks[:number])
    assert (
        len(LIGHT_COLOURS)
        == len(DARK_COLOURS)
        == len(MARKER_GLYPHS)
        == len(set(LIGHT_COLOURS))
        == len(set(DARK_COLOURS))
    )


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("colours", "ground"), [(LIGHT_COLOURS, "#ffffff"), (DARK_COLOURS, "#171d24")])
def test_series_have_enough_contrast_with_the_background(colours: tuple[str, ...], ground: str) -> None:
    for colour in colours:
        bright, dim = sorted((luminance(colour) + 0.05, luminance(ground) + 0.05), reverse=True)
        assert bright / dim >= 3, colour  # what WCAG asks of graphics
