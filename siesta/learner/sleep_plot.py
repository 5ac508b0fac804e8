"""Held-out accuracy before and after each sleep, as inline SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["sleep_plot"]

_WIDTH, _HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 10, 24
_RADIUS = 4
_MOST_NUMBERS = 20  # below the axis


def sleep_plot(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return the figure; nothing where no sleep measured an accuracy.

    Args:
        reports: Stored reports of all sleeps, oldest first.
    """
    measured = [(number, *_accuracies(report)) for number, report in enumerate(reports, start=1)]
    points = [(number, before, after) for number, before, after in measured if before is not None and after is not None]
    if not points:
        return ""
    step = (_WIDTH - _LEFT - _RIGHT) / len(reports)
    lines = "".join([*_grid(), *_numbers(len(reports), step), *(_mark(*point, step) for point in points)])
    label = "Held-out accuracy before (ring) and after (dot) each sleep"
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{lines}</svg>'
        f"<figcaption>{label}.</figcaption></figure>"
    )


def _accuracies(report: Mapping[str, Any]) -> tuple[float | None, float | None]:
    before, after = report.get("accuracy_before"), report.get("accuracy_after")
    numbers = [value if isinstance(value, int | float) and 0 <= value <= 1 else None for value in (before, after)]
    return numbers[0], numbers[1]


def _y(share: float) -> float:
    return _TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _x(number: int, step: float) -> float:
    return _LEFT + (number - 0.5) * step


def _grid() -> Iterator[str]:
    for percent in (0, 50, 100):
        y = _y(percent / 100)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>'


def _numbers(sleeps: int, step: float) -> Iterator[str]:
    every = -(-sleeps // _MOST_NUMBERS)
    for number in range(1, sleeps + 1, every):
        yield f'<text x="{_x(number, step):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{number}</text>'


def _mark(number: int, before: float, after: float, step: float) -> str:
    x, start, end = _x(number, step), _y(before), _y(after)
    return (
        f'<path class="change" d="M{x:.1f} {start:.1f}V{end:.1f}"/>'
        f'<circle class="before" cx="{x:.1f}" cy="{start:.1f}" r="{_RADIUS}"/>'
        f'<circle class="after" cx="{x:.1f}" cy="{end:.1f}" r="{_RADIUS}"/>'
    )
