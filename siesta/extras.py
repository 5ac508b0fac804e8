"""What the extras of the package install, and the sentence that a command ends with where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from siesta.errors import BadInput

__all__ = ["require", "require_torch"]


def require(module: str, what: str, extra: str = "sleep") -> None:
    """Raise `BadInput` unless a module is installed; it is not imported.

    Args:
        module: Its name.
        what: What needs it, as the beginning of a sentence.
        extra: The extra of siesta that installs it.
    """
    if not _is_installed(module):
        raise BadInput(f"{what} needs {module}, which is not installed: pip install 'siesta-learn[{extra}]'")


def require_torch(what: str) -> None:
    """Raise `BadInput` unless torch is installed; see `require`."""
    require("torch", what)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
