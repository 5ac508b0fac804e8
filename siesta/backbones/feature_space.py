"""Feature spaces: whether z is taken before or after the last activation, and whether it is centred."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.errors import BadInput

__all__ = ["DEFAULT_SPACE", "SPACES", "FeatureSpace", "make_space"]


@dataclass(frozen=True)
class FeatureSpace:
    """Definition of z, the features of which class means and cosines are computed.

    Attributes:
        linear: Whether z is taken before the last activation, which the top then leaves out.
        centred: Whether the mean of z over base images is subtracted.

    Example:
        >>> make_space("linear_centred")
        FeatureSpace(linear=True, centred=True)
    """

    linear: bool
    centred: bool


DEFAULT_SPACE = "centred"

SPACES: dict[str, FeatureSpace] = {
    "centred": FeatureSpace(linear=False, centred=True),
    "plain": FeatureSpace(linear=False, centred=False),  # as in the paper
    "linear": FeatureSpace(linear=True, centred=False),
    "linear_centred": FeatureSpace(linear=True, centred=True),
}


def make_space(name: str) -> FeatureSpace:
    """Return the feature space with that name."""
    if name not in SPACES:
        raise BadInput(f"there is no space '{name}': choose one of {', '.join(SPACES)}")
    return SPACES[name]
