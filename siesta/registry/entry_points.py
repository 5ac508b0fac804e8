"""The parts that installed packages declare as entry points, by name; nothing is imported until it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from siesta.errors import BadInput

if TYPE_CHECKING:  # slow to import, and needed only where a name is not siesta's own
    from importlib.metadata import EntryPoint

__all__ = ["OutsidePart", "outside_parts"]


@dataclass(frozen=True)
class OutsidePart:
    """A name in the entry points of other packages.

    Attributes:
        name: The name.
        entries: The entry points of that name; more than one is a conflict.
    """

    name: str
    entries: tuple[EntryPoint, ...]

    @property
    def package(self) -> str:
        """The package that declares it, or the packages."""
        return " and ".join(_package(entry) for entry in self.entries)

    def load(self, what: str) -> object:
        """Import the object.

        Args:
            what: What the name stands for in error messages, such as "policy".

        Raises:
            BadInput: Two packages declare the name, or the object cannot be imported.
        """
        if len(self.entries) > 1:
            raise BadInput(
                f"the {what} '{self.name}' is declared by {len(self.entries)} entry points, of {self.package}: "
                "remove all but one"
            )
        try:
            return self.entries[0].load()
        except Exception as error:  # code of another package may raise anything
            reason = (str(error).splitlines() or ["without a message"])[0]
            raise BadInput(
                f"the {what} '{self.name}' of package {self.package} cannot be imported "
                f"({type(error).__name__}: {reason}): fix or uninstall the package"
            ) from error


def outside_parts(group: str) -> Mapping[str, OutsidePart]:
    """Return what installed packages declare in a group of entry points, sorted by name."""
    return _scan(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _scan(group: str, path: tuple[str, ...]) -> dict[str, OutsidePart]:
    """Read the metadata of all packages on `sys.path`, once for each group and path."""
    from importlib.metadata import entry_points

    del path
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return {name: OutsidePart(name, tuple(found[name])) for name in sorted(found)}


def _package(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
