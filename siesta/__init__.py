"""siesta: a classifier that learns as it goes and consolidates while it sleeps."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from siesta.errors import SiestaError
    from siesta.learner import Siesta

__all__ = ["Siesta", "SiestaError", "__version__"]

__version__ = version("siesta-learn")


def __getattr__(name: str) -> Any:
    """Loads torch only when it is needed: `siesta --help` stays quick."""
    if name == "Siesta":
        from siesta.learner import Siesta

        return Siesta
    if name == "SiestaError":
        from siesta.errors import SiestaError

        return SiestaError
    raise AttributeError(f"module 'siesta' has no attribute '{name}'")
