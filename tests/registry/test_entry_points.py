"""Parts that installed packages declare: found without an import, loaded once asked for, refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.registry.entry_points import outside_parts
from tests.registry.packages import install

GROUP = "example.shapes"


def test_names_are_found_sorted_and_nothing_is_imported(site: Path) -> None:
    install(site, "corners", {GROUP: {"square": "never_imported:SQUARE", "cube": "never_imported:CUBE"}})
    parts = outside_parts(GROUP)
    assert list(parts) == ["cube", "square"] and parts["cube"].package == "corners"
    assert outside_parts("example.nothing") == {}
    assert "never_imported" not in sys.modules


def test_an_object_is_imported_when_it_is_loaded(site: Path) -> None:
    install(site, "corners", {GROUP: {"square": "corner_shapes:SQUARE"}}, corner_shapes="SQUARE = '[]'")
    assert outside_parts(GROUP)["square"].load("shape") == "[]"


def test_packages_on_another_path_are_noticed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outside_parts(GROUP) == {}
    monkeypatch.syspath_prepend(install(site / "further", "corners", {GROUP: {"square": "x:y"}}))
    assert list(outside_parts(GROUP)) == ["square"]


def test_a_name_that_two_packages_declare_is_refused(site: Path) -> None:
    for package in ("corners", "edges"):
        install(site, package, {GROUP: {"square": "never_imported:SQUARE"}})
    words = "the shape 'square' is declared by 2 entry points, of (corners and edges|edges and corners): remove all but"
    with pytest.raises(BadInput, match=words):
        outside_parts(GROUP)["square"].load("shape")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:X", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raising_module:X", "RuntimeError: the battery is empty"),
        ("empty_module:X", "AttributeError: module 'empty_module' has no attribute 'X'"),
    ],
)
def test_an_object_that_cannot_be_imported_is_refused_with_its_package(site: Path, target: str, words: str) -> None:
    modules = {"raising_module": "raise RuntimeError('the battery is empty\\nsecond line')", "empty_module": ""}
    install(site, "corners", {GROUP: {"square": target}}, **modules)
    with pytest.raises(BadInput, match=words) as caught:
        outside_parts(GROUP)["square"].load("shape")
    assert str(caught.value).startswith("the shape 'square' of package corners cannot be imported (")
    assert str(caught.value).endswith("): fix or uninstall the package")
