"""Registries: own names first, names of other packages after them, unknown and unfit ones refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from siesta.backbones import BACKBONES
from siesta.codecs import CODECS
from siesta.data import DATASETS, ORDERS
from siesta.engines import ENGINES
from siesta.errors import BadInput
from siesta.methods import METHODS
from siesta.policies import POLICIES
from siesta.pretrain import PRETRAINERS
from siesta.registry import Registry, function_of, part_name
from siesta.selections import SELECTIONS
from siesta.sleep.augment import AUGMENTATIONS
from tests.registry.packages import install

GROUP = "example.shapes"
Shape = Callable[[int], str]


def circle(size: int) -> str:
    """Draw a circle.

    Round.
    """
    return "O" * size


@pytest.fixture
def shapes() -> Registry[Shape]:
    return Registry("shape", {"circle": circle}, group=GROUP, requirement=function_of(1))


@pytest.fixture
def outside(site: Path) -> Path:
    """A package with a square, a circle of its own, and a shape that is none."""
    at = "corner_shapes"
    entries = {GROUP: {"square": f"{at}:square", "circle": f"{at}:square", "flat": f"{at}:FLAT"}}
    return install(site, "corners", entries, corner_shapes="FLAT = 3\ndef square(size):\n    return '#' * size\n")


def test_own_names_come_first_and_win(shapes: Registry[Shape], outside: Path) -> None:
    assert list(shapes) == ["circle", "flat", "square"] and len(shapes) == 3
    assert "square" in shapes and "oval" not in shapes
    assert shapes["circle"] is circle and shapes["square"](2) == "##"
    assert dict(shapes.own) == {"circle": circle}


def test_without_other_packages_there_are_the_own_names_only(shapes: Registry[Shape]) -> None:
    assert list(shapes) == ["circle"] and shapes.get("square") is None


def test_an_unknown_name_is_refused_with_all_choices(shapes: Registry[Shape], outside: Path) -> None:
    with pytest.raises(
        BadInput, match=r"^there is no shape 'oval': choose one of circle, flat, square, or install the package that"
    ):
        shapes["oval"]
    with pytest.raises(BadInput, match="there is no shape 'oval'"):
        shapes.check("oval")


def test_an_object_that_does_not_fit_is_refused_with_its_package(shapes: Registry[Shape], outside: Path) -> None:
    shapes.check("square")
    with pytest.raises(BadInput, match="the shape 'flat' of package corners is of type int, not a function: fix or"):
        shapes.check("flat")


def test_a_name_or_an_object_is_resolved(shapes: Registry[Shape]) -> None:
    assert shapes.resolve("circle") is circle and shapes.resolve(hex) is hex


def test_a_part_can_be_added_and_removed_in_python(shapes: Registry[Shape]) -> None:
    shapes["dot"] = lambda _: "."
    assert list(shapes) == ["circle", "dot"] and shapes["dot"](1) == "."
    del shapes["dot"]
    assert "dot" not in shapes


def test_an_object_is_stored_under_its_name_and_found_by_it(shapes: Registry[Shape]) -> None:
    def oval(_: int) -> str:
        return "()"

    assert shapes.name_of("anything") == "anything" and shapes.name_of(circle) == "circle"
    with pytest.raises(BadInput, match="the given shape has no name, which has to be stored: set its attribute 'name'"):
        shapes.name_of(oval)
    oval.name = "circle"  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="there is another shape 'circle': give yours another name"):
        shapes.name_of(oval)
    oval.name = "oval"  # type: ignore[attr-defined]
    assert shapes.name_of(oval) == shapes.name_of(oval) == "oval" and shapes["oval"] is oval
    with pytest.raises(BadInput, match="the given shape is of type int, not a function: correct it"):
        shapes.name_of(3)  # type: ignore[arg-type]


def test_summaries_are_docstrings_or_packages(shapes: Registry[Shape], outside: Path) -> None:
    from_corners = "from the package corners"
    assert shapes.summaries() == {"circle": "Draw a circle", "flat": from_corners, "square": from_corners}


def test_a_part_is_called_by_its_name_or_that_of_the_object() -> None:
    assert [part_name(part) for part in ("round", circle, 3)] == ["round", "circle", "int"]


@pytest.mark.parametrize(
    ("registry", "kind"),
    [
        (POLICIES, "policy"),
        (AUGMENTATIONS, "augmentation"),
        (BACKBONES, "backbone"),
        (CODECS, "codec"),
        (ENGINES, "engine"),
        (SELECTIONS, "selection"),
        (DATASETS, "dataset"),
        (ORDERS, "order"),
        (METHODS, "method"),
        (PRETRAINERS, "method"),
    ],
)
def test_every_own_part_meets_the_requirement_of_its_kind(registry: Registry[object], kind: str) -> None:
    for name in registry.own:
        assert registry.problem(registry[name]) is None
    with pytest.raises(BadInput, match=f"there is no {kind} 'x': choose one of {next(iter(registry))}, "):
        registry["x"]
