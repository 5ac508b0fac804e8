"""`Registry`: the parts of one kind by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import TypeVar, cast

from siesta.errors import BadInput
from siesta.registry.entry_points import outside_parts
from siesta.registry.requirements import Requirement

__all__ = ["Registry", "UnknownPart", "part_name"]

T = TypeVar("T")


class UnknownPart(BadInput, KeyError):
    """A name that no part has; a KeyError too, so that a registry is a mapping like any other."""

    def __str__(self) -> str:
        return str(self.args[0])


class Registry(MutableMapping[str, T]):
    """The parts of one kind by name: siesta's own, then those of other packages.

    Other packages declare theirs as entry points. Their names are read from the metadata of installed packages; a part
    is imported, and checked, when it is first looked up. Of two parts with the same name siesta's own is used.
    In Python, a part can also be added by assignment; this process then finds it.

    Example:
        >>> shapes = Registry("shape", {"round": "O", "straight": "I"}, group="example.shapes")
        >>> shapes["round"], list(shapes)
        ('O', ['round', 'straight'])
        >>> shapes["square"]
        Traceback (most recent call last):
        siesta.registry.registry.UnknownPart: there is no shape 'square': choose one of round, straight, or install ...
    """

    def __init__(self, what: str, own: Mapping[str, T], *, group: str, requirement: Requirement | None = None) -> None:
        """Take siesta's own parts.

        Args:
            what: What a name stands for in error messages, such as "policy".
            own: Siesta's own parts by name.
            group: The group of entry points in which other packages declare theirs.
            requirement: What a part of another package must be.
        """
        self._what = what
        self._group = group
        self._own = dict(own)
        self._requirement = requirement

    @property
    def own(self) -> Mapping[str, T]:
        """The parts without those of other packages, so that none is imported."""
        return MappingProxyType(self._own)

    def summaries(self) -> dict[str, str]:
        """Return a line on each part: the first of its docstring, or the name of the package that it comes from."""
        own = {name: (part.__doc__ or "").partition("\n")[0].rstrip(".") for name, part in self._own.items()}
        outside = {name: f"from the package {part.package}" for name, part in outside_parts(self._group).items()}
        return own | {name: line for name, line in outside.items() if name not in own}

    def resolve(self, part: str | T) -> T:
        """Return the part with a name; any other object is returned as it is."""
        return self[part] if isinstance(part, str) else part

    def name_of(self, part: str | T) -> str:
        """Return the name under which a part is stored; a name is returned as it is.

        An object that no name stands for yet is added to this process under its attribute `name`.
        """
        if isinstance(part, str):
            return part
        for known, own in self._own.items():
            if own is part:
                return known
        problem, name = self.problem(part), getattr(part, "name", None)
        if problem is not None:
            raise BadInput(f"the given {self._what} {problem}: correct it")
        if not (isinstance(name, str) and name):
            raise BadInput(f"the given {self._what} has no name, which has to be stored: set its attribute 'name'")
        if name not in self:
            self._own[name] = part
        elif self[name] is not part:
            raise BadInput(f"there is another {self._what} '{name}': give yours another name")
        return name

    def problem(self, part: object) -> str | None:
        """Return what is wrong with an object as a part of this kind, as the end of a sentence; None if nothing is."""
        return None if self._requirement is None else self._requirement(part)

    def check(self, name: str) -> None:
        """Raise `BadInput` unless there is a part with this name that can be used."""
        self[name]

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self._own[name]
        outside = outside_parts(self._group).get(name)
        if outside is None:
            raise UnknownPart(
                f"there is no {self._what} '{name}': choose one of {', '.join(self)}, or install the package that "
                "declares it"
            )
        part = outside.load(self._what)
        problem = self.problem(part)
        if problem is not None:
            subject = f"the {self._what} '{name}' of package {outside.package}"
            raise BadInput(f"{subject} {problem}: fix or uninstall the package")
        return cast(T, part)

    def __setitem__(self, name: str, part: T) -> None:
        self._own[name] = part

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in outside_parts(self._group)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in outside_parts(self._group) if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def part_name(part: object) -> str:
    """Return what reports and messages call a part: its name if it was chosen by name, else that of the object."""
    return part if isinstance(part, str) else str(getattr(part, "__name__", type(part).__name__))
