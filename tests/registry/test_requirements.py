"""What is demanded of a part, and how what is wrong with it is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import pytest

from siesta.registry import class_of, function_of, instance_of


class Shape(Protocol):
    """Corners are seen in the class, sides only in an object."""

    corners: ClassVar[int]
    sides: int

    def area(self, scale: float) -> float:
        """Return the area."""
        ...

    @classmethod
    def unit(cls) -> Any:
        """Return the one with sides of length one."""
        ...

    @property
    def centre(self) -> float:
        """The centre."""
        ...


class Square:
    corners = 4

    def __init__(self, side: float, *, colour: str = "red") -> None:
        self.colour = colour
        self.sides = 4
        self.side = side
        self.centre = side / 2

    def area(self, scale: float) -> float:
        return float(scale * self.side**2)

    @classmethod
    def unit(cls) -> Square:
        return cls(1)


class Half:
    def area(self, scale: float) -> float:
        return scale


def plain(first: int, second: int = 0, *, colour: str = "red") -> int:
    return first + second


def anything(*_: int) -> None:
    return None


def test_a_class_that_implements_the_protocol_fits() -> None:
    assert class_of(Shape)(Square) is None
    assert class_of(Shape, arguments=1)(Square) is None


@pytest.mark.parametrize(
    ("part", "arguments", "words"),
    [
        (Half, None, "does not implement Shape: it has no unit, corners"),
        (Square(1), None, "is of type Square, not a class that implements Shape"),
        (Square, 0, "cannot be called with 0 positional arguments"),
        (Square, 2, "cannot be called with 2 positional arguments"),
    ],
)
def test_what_is_wrong_with_a_class_is_named(part: object, arguments: int | None, words: str) -> None:
    assert class_of(Shape, arguments)(part) == words


@pytest.mark.parametrize("part", [plain, anything, len, dict, lambda x: x])
def test_a_function_of_one_argument_fits(part: Callable[..., Any]) -> None:
    assert function_of(1)(part) is None


def test_what_is_wrong_with_a_function_is_named() -> None:
    assert function_of(2)(plain) is None and function_of(7)(anything) is None
    assert function_of(0)(plain) == "cannot be called with 0 positional arguments"
    assert function_of(1)(lambda: 0) == "cannot be called with 1 positional argument"
    assert function_of(1)("plain") == "is of type str, not a function"


def test_an_object_of_a_class_is_required() -> None:
    assert instance_of(Square)(Square(1)) is None
    assert instance_of(Square)(Square) == "is the class Square, not a Square"
    assert instance_of(Square)(3) == "is of type int, not a Square"
