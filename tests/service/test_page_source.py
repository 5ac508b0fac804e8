"""Source files of the page: no build step, nothing from other sites, and text is never taken for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import siesta

STATIC = Path(siesta.__file__).parent / "service" / "static"
MODULES = sorted(STATIC.glob("*.js"))
FILES = sorted(STATIC.iterdir())


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def tags() -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed((STATIC / "index.html").read_text("utf-8"))
    return parser.tags


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name)
def test_a_module_is_short_and_described_and_makes_no_markup_of_text(file: Path) -> None:
    text = file.read_text("utf-8")
    assert re.match(r"// [A-Z].+\.\n\n", text)
    assert len(text.splitlines()) <= 200
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style", text
    )


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name)
def test_imports_exist(file: Path) -> None:
    for names, other in re.findall(r"import \{([^}]+)\} from \"\./([^\"]+)\"", file.read_text("utf-8")):
        exporting = (STATIC / other).read_text("utf-8")
        for name in names.split(","):
            exported = rf"export (const|class|(async )?function\*?) {re.escape(name.strip())}(?!\w)"
            assert re.search(exported, exporting), (other, name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_refers_to_another_site(file: Path) -> None:
    text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import", text)


def test_markup_has_no_inline_script_style_or_handler(tags: list[tuple[str, dict[str, str | None]]]) -> None:
    for tag, attributes in tags:
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_ids_are_unique_and_all_that_modules_use_exist(tags: list[tuple[str, dict[str, str | None]]]) -> None:
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = {name for file in MODULES for name in re.findall(r"\$\(\"([^\"]+)\"\)", file.read_text("utf-8"))}
    assert used <= set(ids)


def test_every_control_has_a_name(tags: list[tuple[str, dict[str, str | None]]]) -> None:
    labelled = {attributes.get("for") for tag, attributes in tags if tag == "label"}
    for tag, attributes in tags:
        if tag in ("input", "select") and "hidden" not in attributes:
            assert attributes.get("aria-label") or attributes.get("id") in labelled, attributes
