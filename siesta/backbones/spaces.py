"""In which space class means live and cosines are taken: before or after the last activation, centred or not."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.errors import BadInput

__all__ = ["DEFAULT_SPACE", "SPACES", "Space", "make_space"]


@dataclass(frozen=True)
class Space:
    """What z is.

    Attributes:
        linear: z is taken before the last activation: that is left out of the top.
        centred: z is seen from its mean over base pictures.
    """

    linear: bool
    centred: bool


DEFAULT_SPACE = "centred"

SPACES: dict[str, Space] = {
    "centred": Space(linear=False, centred=True),
    "plain": Space(linear=False, centred=False),  # the paper's
    "linear": Space(linear=True, centred=False),
    "linear_centred": Space(linear=True, centred=True),
}


def make_space(name: str) -> Space:
    """The space of a name."""
    if name not in SPACES:
        raise BadInput(f"there is no space '{name}': choose one of {', '.join(SPACES)}")
    return SPACES[name]
